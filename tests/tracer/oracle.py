#!/usr/bin/env python3
"""The tracer bench's oracle: integrates each case's script and judges the product's claims.

    frugality-tracer | python3 tests/tracer/oracle.py [--first]

The oracle uses only the standard library, and no code, constant or file of the product. It implements each figure a
second time, from the text of docs/measurement.md. Times are whole nanoseconds of true time, power is whole
milliwatts, and CPU use is whole nanoseconds per second, so sums are exact.

Exit code: 0 all claims are right (green), 1 a wrong figure or a wrong void (red), 2 no judgement.
With --first, the oracle prints only the first wrong figure, on one line for a table, and stops. Without a wrong
figure, it prints the first wrong void.
"""

import itertools
import json
import sys
from fractions import Fraction

SECOND = 10**9

# Relative tolerance of the figures of requests: rounding of times near 2e9 s.
EXACT = 1e-6
# Energy with the meter's own timestamps and steady power around a window's ends is exact except for rounding. A tenth
# of a percent is a twentieth of the smallest error that a mutant causes.
STAMPED = 0.001
# Kepler's counters may be half a second older than their scrape, at each end of a window.
UNSTAMPED = 0.03
UNSTAMPED_TIME = SECOND // 2

# The right void for each trouble.
VOIDS_BY_TROUBLE = {
    "slow clock exchange": {"ClockOffsetUnknown"},
    "no scrapes": {"ReadingsInterrupted"},
    "counter back": {"CounterDecreased"},
    "short run": {"WindowTooShort"},
}


def overlap(act, window):
    """The time of an act within a window."""
    return max(0, min(act["to"], window[1]) - max(act["from"], window[0]))


def joules(acts, window):
    """Energy of the node in a window: the sum of power times duration over all acts."""
    return Fraction(sum(act["milliwatts"] * overlap(act, window) for act in acts), 1000 * SECOND)


def shared_joules(acts, window, pods, cpus):
    """Energy attributed to pods. At any moment they get the node's power times their share of all CPUs (Kepler's
    formula in the limit of short intervals)."""
    times = {window[0], window[1]}
    for act in acts:
        times.update(t for t in (act["from"], act["to"]) if window[0] < t < window[1])
    times = sorted(times)
    total = 0
    for begin, end in itertools.pairwise(times):
        on = [act for act in acts if act["from"] <= begin and end <= act["to"]]
        milliwatts = sum(act["milliwatts"] for act in on)
        nanocpus = sum(act["nanocpus"].get(pod, 0) for act in on for pod in pods)
        total += milliwatts * nanocpus * (end - begin)
    return Fraction(total, 1000 * SECOND * SECOND * cpus)


def truth(case, trial):
    """Every figure of a trial by its definition. None if the product must not have the figure."""
    acts = case["acts"]
    sent, answered, latencies, codes, server_cpu, database_cpu = [], [], [], [], [], []
    for at, latency, code, server, database in trial["measured"]:
        sent.append(at)
        answered.append(at + latency)
        latencies.append(latency)
        codes.append(code)
        server_cpu.append(server)
        database_cpu.append(database)
    expected = set(trial["expected_status"])
    good = [latency for latency, code in zip(latencies, codes, strict=True) if code in expected]
    n = len(good)
    window = (min(sent), max(answered))
    length = Fraction(window[1] - window[0], SECOND)

    tail_end = max(at + latency for at, latency, *_ in trial["tail"])
    idle_from = tail_end + trial["settle"]
    idle_after = (idle_from, idle_from + trial["idle_length"])
    before, after = (
        joules(acts, idle) / Fraction(idle[1] - idle[0], SECOND)
        for idle in (trial["idle_before"], idle_after)
    )
    gross = joules(acts, window)
    net = gross - length * (before + after) / 2
    candidate, database = trial["candidate_pods"], trial["database_pods"]

    def share(pods):
        return shared_joules(acts, window, pods, case["cpus"])

    figures = {
        "successes": n,
        "errors": len(codes) - n,
        "requests_per_second": n / length,
        "milliseconds_per_request": Fraction(sum(good), n) / 10**6,
        "node_joules": gross,
        "idle_before_watts": before,
        "idle_after_watts": after,
        "gross_joules_per_request": gross / n,
        "net_joules_per_request": net / n,
        "candidate_joules_per_request": share(candidate) / n,
        "attributed_joules_per_request": share(candidate + database) / n if database else None,
        "candidate_cpu_seconds_per_request": None,
        "cpu_seconds_per_request": None,
    }
    if case["meter"] == "frugality-meter":  # Kepler serves no CPU time of pods.
        idle_cpu = sum(
            act["nanocpus"].get(pod, 0) * overlap(act, window)
            for act in acts
            for pod in database
            if act["what"] == "idle"
        )
        server = Fraction(sum(server_cpu), SECOND)
        both = server + Fraction(sum(database_cpu), SECOND) + Fraction(idle_cpu, SECOND**2)
        figures["candidate_cpu_seconds_per_request"] = server / n
        if database:
            figures["cpu_seconds_per_request"] = both / n
    return figures


def allowed(case, trial, name, true, figures):
    """The allowed difference between a claim and the true value."""
    if name in ("successes", "errors"):
        return 0
    if name in ("requests_per_second", "milliseconds_per_request"):
        return EXACT * abs(true)
    share = UNSTAMPED if case["meter"] == "kepler" else STAMPED
    if case["meter"] == "kepler" and name.startswith("idle_"):
        # The interval of the counters may be this much shorter or longer than the baseline.
        share = Fraction(UNSTAMPED_TIME, trial["idle_length"])
    if name == "net_joules_per_request":  # Relative to gross, because net is a difference of two inexact figures.
        true = figures["gross_joules_per_request"]
    return share * abs(true)


def findings_of(case, trial):
    """The errors in the claim of a trial: claimed value, true value, remark."""
    claim = trial["claim"]
    may_be_void, may_be_measured = set(), True
    if case["meter"] == "frugality-meter" and case["interval_milliseconds"] > 1000:
        # Half of the time its readings are older than the limit of 5 s.
        may_be_void, may_be_measured = {"MeterStale"}, False
    if trial["is_troubled"]:
        may_be_void, may_be_measured = VOIDS_BY_TROUBLE[case["trouble"]], False
    if "void" in claim:
        if claim["void"] not in may_be_void:
            yield f"void {claim['void']}", "a figure" if may_be_measured else "another void", claim["message"]
        return
    if not may_be_measured:
        cause = case["trouble"] or f"a reading every {case['interval_milliseconds'] / 1000:g} s"
        yield "figures", "void " + " or ".join(sorted(may_be_void)), cause
        return
    claims, figures = claim["figures"], truth(case, trial)
    # The figures that decide a verdict come first, because --first prints only one finding.
    for name in sorted(figures, key=lambda name: not name.endswith("joules_per_request")):
        claimed, true = claims[name], figures[name]
        if claimed is None and true is None:
            continue
        if claimed is None or true is None:
            yield f"{name} {claimed}", "none" if true is None else f"{float(true):.6g}", "one is missing"
        # `not <=` instead of `>`, because a claim of NaN must be a finding.
        elif not abs(Fraction(claimed) - true) <= Fraction(allowed(case, trial, name, true, figures)):
            off = f"{100 * (claimed / float(true) - 1):+.3g} %" if true else "truth is 0"
            yield f"{name} {claimed:.6g}", f"{float(true):.6g}", off
    if case["meter"] == "kepler":
        # The product's stated uncertainty must cover its error.
        claimed, true = claims["node_joules"], float(figures["node_joules"])
        stated = claims["relative_uncertainty"]
        if not abs(claimed / true - 1) <= 2 * stated:
            yield f"node_joules {claimed:.6g}", f"{true:.6g}", f"stated uncertainty {stated:.3g}"


def main():
    first_only = sys.argv[1:] == ["--first"]
    cases = trials = voids = red = 0
    wrong_void = None
    try:
        for line in sys.stdin:
            case = json.loads(line)
            case["acts"] = [
                dict(zip(("what", "from", "to", "milliwatts", "nanocpus"), act, strict=True)) for act in case["acts"]
            ]
            cases += 1
            for number, trial in enumerate(case["trials"], 1):
                trials += 1
                voids += "void" in trial["claim"]
                for claimed, true, remark in findings_of(case, trial):
                    red += 1
                    row = f"{claimed}\t{true}\t{remark}\t{case['case']}, trial {number}"
                    if first_only and "void" in trial["claim"]:
                        wrong_void = wrong_void or row
                    elif first_only:
                        print(row)
                        return 1
                    elif red <= 40:
                        print(f"{case['case']}, trial {number}: {claimed}, truth {true} ({remark})")
    except (ValueError, KeyError, TypeError) as error:
        print(f"the oracle cannot read the bench's output: {error!r}", file=sys.stderr)
        return 2
    if not trials:
        print("the bench ran no case", file=sys.stderr)
        return 2
    if wrong_void:
        print(wrong_void)
    if not first_only:
        print(f"{cases} cases, {trials} trials, {voids} of them void, {red} findings")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
