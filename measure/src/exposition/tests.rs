use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn sample(name: &str, labels: &[(&str, &str)], value: f64) -> Sample {
    let labels = labels
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Sample {
        name: name.to_owned(),
        labels: labels.collect(),
        value,
        timestamp: None,
    }
}

#[test]
fn reads_samples_and_leaves_comments_out() {
    let text = "# HELP a_total What it is\n# TYPE a_total counter\n\na_total 1\n  \
                b{zone=\"psys\",path=\"/x\"} 2.5e-06\n\tc { x = \"1\" , } +4\n# EOF\n";
    assert_eq!(
        parse(text).unwrap(),
        [
            sample("a_total", &[], 1.0),
            sample("b", &[("zone", "psys"), ("path", "/x")], 2.5e-6),
            sample("c", &[("x", "1")], 4.0),
        ]
    );
    assert_eq!(parse(""), Ok(vec![]));
}

#[test]
fn reads_timestamps_and_leaves_exemplars_out() {
    let text = "a 1 1795236942869\nb{x=\"#1\"} 2 1795236942.869\r\n\
                c_bucket{le=\"1\"} 3 # {trace_id=\"a b\"} 0.5 1795236942\n";
    let at = |timestamp, sample| Sample {
        timestamp: Some(timestamp),
        ..sample
    };
    let expected = [
        at(1_795_236_942_869.0, sample("a", &[], 1.0)),
        at(1_795_236_942.869, sample("b", &[("x", "#1")], 2.0)),
        sample("c_bucket", &[("le", "1")], 3.0),
    ];
    assert_eq!(parse(text).unwrap(), expected);
}

#[test]
fn resolves_escapes_in_labels() {
    let text = "a{path=\"C:\\\\dir\\\"quoted\\\"\\nline}, é\\d\"} 1\n";
    assert_eq!(
        parse(text).unwrap()[0].label("path"),
        Some("C:\\dir\"quoted\"\nline}, é\\d")
    );
}

#[test]
fn reads_nan_and_infinities() {
    let values: Vec<f64> = parse("a NaN\na +Inf\na -Inf\na Inf\n")
        .unwrap()
        .iter()
        .map(|s| s.value)
        .collect();
    assert!(values[0].is_nan());
    assert_eq!(
        values[1..],
        [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY]
    );
}

#[test]
fn an_error_names_the_line_and_the_problem() {
    let cases = [
        ("a 1\nb 12", "line 2: the text ends inside this line"),
        ("# x\n9a 1\n", "line 2: a metric name is expected"),
        ("{x=\"1\"} 1\n", "line 1: a metric name is expected"),
        (
            "a{9=\"1\"} 1\n",
            "line 1: a name or '}' is expected among the labels",
        ),
        (
            "a{x:y=\"1\"} 1\n",
            "line 1: '=' is expected among the labels",
        ),
        ("a{x=1} 1\n", "line 1: '\"' is expected among the labels"),
        (
            "a{x=\"1} 1\n",
            "line 1: a closing '\"' is expected among the labels",
        ),
        (
            "a{x=\"1\\\"} 1\n",
            "line 1: a closing '\"' is expected among the labels",
        ),
        (
            "a{x=\"1\" y=\"2\"} 1\n",
            "line 1: ',' or '}' is expected among the labels",
        ),
        (
            "a{x=\"1\",x=\"2\"} 1\n",
            "line 1: the label x is given twice",
        ),
        ("a\n", "line 1: \"\" is not a value"),
        ("a{x=\"1\"}\n", "line 1: \"\" is not a value"),
        ("a 1,5\n", "line 1: \"1,5\" is not a value"),
        ("a 1e999\n", "line 1: \"1e999\" is not a value"),
        ("a 1 soon\n", "line 1: \"soon\" is not a timestamp"),
        ("a 1 2 3\n", "line 1: \"3\" is not a timestamp"),
    ];
    for (text, message) in cases {
        assert_eq!(parse(text).unwrap_err().to_string(), message, "{text:?}");
    }
}

/// A sample in the format of a meter.
fn write(sample: &Sample) -> String {
    let mut text = sample.name.clone();
    for (index, (name, value)) in sample.labels.iter().enumerate() {
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        write!(
            text,
            "{}{name}=\"{value}\"",
            if index == 0 { '{' } else { ',' }
        )
        .unwrap();
    }
    if !sample.labels.is_empty() {
        text.push('}');
    }
    writeln!(text, " {}", sample.value).unwrap();
    text
}

fn any_sample() -> impl Strategy<Value = Sample> {
    let labels = prop::collection::btree_map("[a-zA-Z_][a-zA-Z0-9_]{0,8}", any::<String>(), 0..4);
    let value = prop_oneof![
        prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::SUBNORMAL,
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
    ];
    ("[a-zA-Z_:][a-zA-Z0-9_:]{0,12}", labels, value).prop_map(|(name, labels, value)| Sample {
        name,
        labels,
        value,
        timestamp: None,
    })
}

proptest! {
    #[test]
    fn reads_back_what_was_written(samples in prop::collection::vec(any_sample(), 0..8)) {
        let text: String = samples.iter().map(write).collect();
        prop_assert_eq!(parse(&text).unwrap(), samples);
    }

    #[test]
    fn never_panics_on_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn never_panics_on_almost_an_exposition(text in "[a{}=\",\\\\ n#0-9.eE+\\-\n\té]{0,60}\n") {
        let _ = parse(&text);
    }

    #[test]
    fn never_reads_a_text_that_was_cut_off_inside_a_line(
        samples in prop::collection::vec(any_sample(), 1..4),
        share in 0.0..1.0_f64,
    ) {
        let text: String = samples.iter().map(write).collect();
        let wanted = (share * text.len() as f64).floor();
        let end = (0..text.len()).filter(|&at| text.is_char_boundary(at))
            .find(|&at| at as f64 >= wanted).unwrap_or(0);
        let cut = &text[..end];
        prop_assert_eq!(parse(cut).is_ok(), cut.is_empty() || cut.ends_with('\n'));
    }
}
