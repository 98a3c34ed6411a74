//! Candidates that the injector limited. Their figures describe the injector, so the operator concludes
//! nothing from them.

use frugality_measure::pace::InjectorCpu;
use frugality_operator::{
    api::{
        BudgetOutcome, CandidateResult, FrugalityBenchmark, FrugalityBenchmarkStatus,
        InjectorLimits, Verdict, condition,
    },
    plan::{action::Plan, report::trial::warning},
};
use serde_json::{Value, json};

use crate::common::{
    edited,
    entries::{Trial, factor, judged, measured, swept},
    judgement::{status, usual},
    two_with,
};

/// A trial with these shares of the injector's CPU and of the measured node's CPU in use.
fn busy(injector: f64, node: f64) -> impl Fn(Trial) -> Trial {
    move |trial| Trial {
        injector_cpu: Some(InjectorCpu {
            cpus: 1,
            busy_share: Some(injector),
            busiest_share: Some(injector),
            throttled_seconds: Some(0.0),
            ..InjectorCpu::default()
        }),
        node_share: Some(node),
        ..trial
    }
}

/// nginx and lighttpd. Their small answers take less CPU than the injector's requests.
fn static_servers(changes: &[(&str, Value)]) -> FrugalityBenchmark {
    let servers = two_with(&[
        ("/candidates/0/name", json!("nginx")),
        ("/candidates/1/name", json!("lighttpd")),
        ("/energy/tieWithin", json!("0.05")),
    ]);
    edited(&servers, changes)
}

/// As fast as the injector sends. Chance changes the figures by up to 0.2 % from block to block, and the servers
/// do not differ.
fn saturated(block: i32) -> Trial {
    let f = factor(block, 0.001);
    busy(0.97, 0.48)(Trial {
        gross: 0.000_17 * f,
        net: Some(0.000_1 * f),
        attributed_candidate: Some(0.000_08 * f),
        attributed_both: Some(0.000_08 * f),
        requests_per_second: 28_500.0 / f,
        milliseconds: 0.14 * f,
        ..Trial::default()
    })
}

fn judged_as(plan: &Plan) -> (Option<Verdict>, &str, &str) {
    let complete = plan
        .status
        .conditions
        .iter()
        .find(|c| c.type_ == condition::COMPLETE);
    let complete = complete.unwrap();
    (plan.status.verdict, &complete.reason, &complete.message)
}

fn result<'a>(status: &'a FrugalityBenchmarkStatus, candidate: &str) -> &'a CandidateResult {
    let mut results = status.results.iter();
    results
        .find(|result| result.candidate == candidate)
        .unwrap()
}

#[test]
fn two_servers_that_the_injector_limits_have_no_tie_and_no_winner() {
    let plan = status(&static_servers(&[]), |block, _| saturated(block));
    let found = &plan.status;
    assert_eq!((found.tie, &found.winner), (None, &None));
    assert!(found.comparisons.is_empty(), "{:?}", found.comparisons);
    let (verdict, reason, message) = judged_as(&plan);
    assert_eq!(
        (verdict, reason),
        (Some(Verdict::Inconclusive), "InjectorLimited")
    );
    for words in [
        "Not compared: nginx and lighttpd.",
        "the injector's CPUs were 97.0 % busy",
        "48.0 % of the measured node's CPU in use",
        "write a load.rate that every candidate reaches, give the injector more CPU, or ask for larger answers",
        "The injector's limit is 28500 requests/s, and nginx may reach more.",
    ] {
        assert!(message.contains(words), "{words:?} in {message}");
    }
    // The note does not repeat what the message has said.
    let limited = message.matches("The injector limited nginx:").count();
    assert_eq!(limited, 1, "{message}");
}

#[test]
fn figures_that_the_injector_limited_are_withheld_and_cpu_time_stays() {
    let plan = status(&static_servers(&[]), |block, _| saturated(block));
    for candidate in ["nginx", "lighttpd"] {
        let result = result(&plan.status, candidate);
        assert_eq!(result.requests_per_second, None);
        assert_eq!(result.milliseconds_per_request, None);
        assert_eq!(result.gross_joules_per_request, None);
        assert!(result.cpu_milliseconds_per_request.is_some());
        let why = format!("requests/s: the injector limited {candidate}");
        assert!(result.withheld.contains(&why), "{:?}", result.withheld);
        let injector = result.injector.as_ref().unwrap();
        assert_eq!(injector.limits, Some(InjectorLimits::Rate));
        assert_eq!(injector.cpu_share, Some(0.97));
        assert_eq!(injector.node_cpu_share, Some(0.48));
    }
}

/// Without a comparison, only the note can have the remedy. The trials say it while the run measures.
#[test]
fn a_limited_candidate_has_a_remedy_and_a_warning_in_each_trial() {
    let alone = json!([{ "name": "nginx", "image": "example.org/nginx:1" }]);
    let benchmark = static_servers(&[("/candidates", alone)]);
    let plan = status(&benchmark, |block, _| saturated(block));
    let (_, reason, message) = judged_as(&plan);
    assert_eq!(reason, "InjectorLimited");
    let remedy = "To measure it, write a load.rate that every candidate reaches";
    assert!(message.contains(remedy), "{message}");

    let warned = |trial: Trial| warning(&measured(&benchmark, &trial));
    let text = warned(saturated(1)).unwrap();
    assert!(text.contains("InjectorLimited"), "{text}");
    assert_eq!(warned(busy(0.6, 0.99)(usual(1, "nginx"))), None);
}

#[test]
fn one_limited_candidate_is_enough_and_the_other_keeps_its_figures() {
    let plan = status(&static_servers(&[]), |block, candidate| match candidate {
        "nginx" => saturated(block),
        _ => busy(0.6, 0.99)(usual(block, candidate)),
    });
    assert_eq!(judged_as(&plan).1, "InjectorLimited");
    assert_eq!(plan.status.winner, None);
    let other = result(&plan.status, "lighttpd");
    assert!(other.requests_per_second.is_some());
    assert_eq!(other.injector.as_ref().unwrap().limits, None);
}

#[test]
fn a_busy_injector_that_loads_a_busier_node_limits_nothing() {
    let plan = status(&static_servers(&[]), |block, _| {
        busy(0.97, 0.96)(saturated(block))
    });
    assert_eq!(plan.status.tie, Some(true));
    assert!(result(&plan.status, "nginx").requests_per_second.is_some());
}

#[test]
fn the_fastest_trials_are_not_discarded() {
    // At the threshold, the fast trials are above and the slow trials below. All trials count, and the median
    // decides.
    let of = |share: f64| {
        status(&static_servers(&[]), move |block, candidate| {
            let trial = usual(block, candidate);
            let faster = trial.requests_per_second / 400.0;
            busy(share * faster, 0.5)(trial)
        })
    };
    let quiet = of(0.799);
    assert_eq!(result(&quiet.status, "nginx").trials, 5);
    let rate = result(&quiet.status, "nginx").requests_per_second.unwrap();
    assert!((rate.value - 400.0).abs() < 0.01, "{rate:?}");
    assert_eq!(judged_as(&of(0.801)).1, "InjectorLimited");
}

#[test]
fn connections_that_wait_for_the_injector_limit_all_trials_or_none() {
    let of = |occupancy: [f64; 5]| {
        status(&static_servers(&[]), move |block, candidate| Trial {
            occupancy: occupancy[usize::try_from(block - 1).unwrap()],
            ..usual(block, candidate)
        })
    };
    let one_low = of([0.99, 0.99, 0.99, 0.99, 0.5]);
    assert_eq!(result(&one_low.status, "nginx").injector, None);
    let most_low = of([0.85, 0.85, 0.85, 0.99, 0.99]);
    let (_, reason, message) = judged_as(&most_low);
    assert_eq!(reason, "InjectorLimited");
    let words = "the connections waited for answers for only 85.0 % of the time (at least 90.0 % are needed)";
    assert!(message.contains(words), "{message}");
}

#[test]
fn a_throttled_injector_limits_its_candidate() {
    let plan = status(&static_servers(&[]), |block, candidate| Trial {
        injector_cpu: Some(InjectorCpu {
            cpus: 1,
            limit_cpus: Some(0.3),
            used_seconds: Some(5.9),
            throttled_seconds: Some(13.0),
            busy_share: Some(0.4),
            busiest_share: Some(0.4),
        }),
        node_share: Some(0.3),
        ..usual(block, candidate)
    });
    let (_, reason, message) = judged_as(&plan);
    assert_eq!(reason, "InjectorLimited");
    let words = "a CPU limit throttled the injector for 65.0 % of the time";
    assert!(message.contains(words), "{message}");
}

fn budget(limits: &Value) -> FrugalityBenchmark {
    let mut budget = limits.clone();
    budget["candidate"] = json!("nginx");
    static_servers(&[("/budgets", json!([budget]))])
}

#[test]
fn a_budget_is_met_at_the_injectors_limit_but_never_exceeded() {
    // 28500 requests/s in 0.14 ms. With more CPU for the injector, the rate would be higher and the time
    // shorter.
    for (limits, outcome) in [
        (json!({"minRequestsPerSecond": "20000"}), BudgetOutcome::Met),
        (
            json!({"minRequestsPerSecond": "40000"}),
            BudgetOutcome::Withheld,
        ),
        (
            json!({"maxMillisecondsPerRequest": "0.2"}),
            BudgetOutcome::Met,
        ),
        (
            json!({"maxMillisecondsPerRequest": "0.1"}),
            BudgetOutcome::Withheld,
        ),
        // These figures would differ at another rate.
        (
            json!({"maxJoulesPerRequest": "0.001"}),
            BudgetOutcome::Withheld,
        ),
        (
            json!({"maxJoulesPerRequest": "0.0001"}),
            BudgetOutcome::Withheld,
        ),
        (json!({"maxErrorRatio": "0.5"}), BudgetOutcome::Withheld),
        (
            json!({"maxEnergyRatio": "2", "against": "lighttpd"}),
            BudgetOutcome::Withheld,
        ),
    ] {
        let plan = status(&budget(&limits), |block, _| saturated(block));
        let budget = &plan.status.budgets[0];
        assert_eq!(budget.outcome, outcome, "{limits}: {}", budget.message);
        let (verdict, reason, message) = judged_as(&plan);
        if outcome == BudgetOutcome::Met {
            assert_eq!(verdict, Some(Verdict::Pass), "{limits}: {message}");
            let words = "The injector limited nginx, so nginx may be better.";
            assert!(message.contains(words), "{message}");
        } else {
            assert_eq!(
                (verdict, reason),
                (Some(Verdict::Inconclusive), "InjectorLimited"),
                "{limits}: {message}"
            );
            assert_eq!(budget.figure, None);
        }
    }
}

#[test]
fn at_a_rate_that_is_reached_joules_are_compared_and_times_withheld() {
    let at_rate = static_servers(&[("/load/rate", json!(1000))]);
    let plan = status(&at_rate, |block, candidate| Trial {
        shortfall: Some(0.0),
        occupancy: 0.2,
        ..busy(0.97, 0.3)(usual(block, candidate))
    });
    assert_eq!(plan.status.tie, Some(true));
    let result = result(&plan.status, "nginx");
    assert!(result.net_joules_per_request.is_some());
    assert!(result.requests_per_second.is_some());
    assert_eq!(result.milliseconds_per_request, None);
    assert_eq!(
        result.injector.as_ref().unwrap().limits,
        Some(InjectorLimits::Times)
    );
    let notes = plan.status.notes.join("; ");
    assert!(
        notes.contains("The rate was reached, so the joules do not depend on the injector"),
        "{notes}"
    );
}

#[test]
fn a_limit_of_the_times_alone_excuses_no_missing_joules() {
    let of = |budgets: Value| {
        let at_rate = static_servers(&[("/load/rate", json!(1000)), ("/budgets", budgets)]);
        let plan = status(&at_rate, |block, candidate| Trial {
            shortfall: Some(0.0),
            occupancy: 0.2,
            net: None,
            ..busy(0.97, 0.3)(usual(block, candidate))
        });
        let (verdict, reason, message) = judged_as(&plan);
        (verdict, reason.to_owned(), message.to_owned())
    };
    let errors = json!([{"candidate": "nginx", "maxErrorRatio": "0.01"}]);
    let joules = json!([{"candidate": "nginx", "maxJoulesPerRequest": "0.02"}]);
    for budgets in [json!([]), errors, joules] {
        let (verdict, reason, message) = of(budgets.clone());
        assert_eq!(verdict, Some(Verdict::Inconclusive), "{budgets}: {message}");
        assert_eq!(reason, "FigureWithheld", "{budgets}: {message}");
        assert!(
            message.contains("net joules missing in 5 of 5 trials"),
            "{budgets}: {message}"
        );
    }
}

#[test]
fn a_limit_at_one_point_leaves_the_others_alone_and_names_no_best_point() {
    let sweep = static_servers(&[("/load/sweep", json!({"connections": [1, 8]}))]);
    let trials = swept(&sweep, |connections, block, _, candidate| {
        let node = if connections == 8 { 0.48 } else { 0.95 };
        busy(0.97, node)(usual(block, candidate))
    });
    let plan = judged(&sweep, trials);
    let compared: Vec<&str> = plan
        .status
        .comparisons
        .iter()
        .map(|c| c.point.as_str())
        .collect();
    assert_eq!(compared, ["c1-max"]);
    assert_eq!(plan.status.winner, None);
    let (verdict, reason, message) = judged_as(&plan);
    assert_eq!(
        (verdict, reason),
        (Some(Verdict::Inconclusive), "InjectorLimited"),
        "{message}"
    );
    for best in &plan.status.sweep {
        assert_eq!(
            (
                &best.most_requests_per_second,
                &best.most_requests_per_joule,
                &best.knee
            ),
            (&None, &None, &None)
        );
    }
}

/// Eight connections to a server that takes 1 ms per request in one thread, and an injector that takes 3 ms between an answer
/// and the next request: 992 requests/s in 5.07 ms. Without the injector's time, the same requests would queue in the server, for
/// about 8 ms.
#[test]
fn a_time_limit_is_met_only_if_a_faster_injector_could_not_break_it() {
    for (limit, outcome) in [
        ("6", BudgetOutcome::Withheld),
        ("8", BudgetOutcome::Withheld),
        ("9", BudgetOutcome::Met),
    ] {
        let limits = json!({ "maxMillisecondsPerRequest": limit });
        let plan = status(&budget(&limits), |block, _| {
            let f = factor(block, 0.001);
            Trial {
                milliseconds: 5.07 * f,
                requests_per_second: 992.0 / f,
                occupancy: 0.63,
                ..Trial::default()
            }
        });
        let budget = &plan.status.budgets[0];
        assert_eq!(budget.outcome, outcome, "{limit}: {}", budget.message);
        let is_met = outcome == BudgetOutcome::Met;
        assert_eq!(plan.status.verdict == Some(Verdict::Pass), is_met);
    }
}

#[test]
fn a_rate_that_a_candidate_missed_is_noted() {
    let at_rate = static_servers(&[("/load/rate", json!(1000))]);
    let plan = status(&at_rate, |block, candidate| Trial {
        shortfall: Some(if candidate == "nginx" { 0.6 } else { 0.005 }),
        ..saturated(block)
    });
    let notes = plan.status.notes.join(" ");
    let note = "nginx reached 40.0 % of the requests/s that were due. The figures hold for the rate that was reached.";
    assert!(notes.contains(note), "{notes}");
    assert!(!notes.contains("lighttpd reached"), "{notes}");
}
