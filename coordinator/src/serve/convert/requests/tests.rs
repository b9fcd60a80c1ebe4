//! Wishes there and back, and every field that can be wrong.

use super::*;

fn wish() -> v1::RequestSpec {
    v1::RequestSpec {
        name: "job-7".to_owned(),
        units: 60,
        gpus_per_unit: 1,
        milli_cpus_per_unit: 500,
        memory_bytes_per_unit: 1 << 30,
        whole_nodes: false,
        gpu_model: "titan-x".to_owned(),
        duration_ms: 28_800_000,
        gang: true,
        min_units: 50,
        locality: "site".to_owned(),
        priority: -3,
        pools: vec!["rack".to_owned()],
        labels: [("team".to_owned(), "vision".to_owned())].into(),
        hold_ms: 60_000,
        team: "vision".to_owned(),
        max_wait_ms: 300_000,
        deadline_unix_ms: Some(NOW.0 + 1),
        gpu_milli_per_unit: 0,
        ..v1::RequestSpec::default()
    }
}

const NOW: UnixMs = UnixMs(1_000);

#[test]
fn a_wish_comes_back_as_it_was_asked() {
    let (name, record) = spec_from(wish(), NOW).expect("spec");
    assert_eq!(spec(&name, &record), wish());
    let loose = v1::RequestSpec {
        gang: false,
        min_units: 0,
        hold_ms: 0,
        duration_ms: 0,
        ..wish()
    };
    let (name, record) = spec_from(loose.clone(), NOW).expect("spec");
    assert_eq!(
        (record.gang_min, record.duration, record.hold),
        (None, None, None)
    );
    assert_eq!(spec(&name, &record), loose);
    let (_, whole) = spec_from(
        v1::RequestSpec {
            min_units: 0,
            ..wish()
        },
        NOW,
    )
    .expect("spec");
    let span = v1::RequestSpec {
        deadline_unix_ms: None,
        deadline_in_ms: 500,
        ..wish()
    };
    let (_, later) = spec_from(span, NOW).expect("spec");
    assert_eq!(later.deadline, Some(UnixMs(1_500)));
    assert_eq!(
        whole.gang_min,
        Some(60),
        "a gang without a minimum wants all"
    );
}

#[test]
fn wrong_fields_are_named() {
    let long = "x".repeat(limits::NAME_BYTES + 1);
    for (field, wrong) in [
        (
            "name",
            v1::RequestSpec {
                name: long.clone(),
                ..wish()
            },
        ),
        (
            "gpu_model",
            v1::RequestSpec {
                gpu_model: long.clone(),
                ..wish()
            },
        ),
        (
            "team",
            v1::RequestSpec {
                team: long.clone(),
                ..wish()
            },
        ),
        (
            "deadline_in_ms",
            v1::RequestSpec {
                deadline_in_ms: 1,
                ..wish()
            },
        ),
        (
            "locality",
            v1::RequestSpec {
                locality: "moon".to_owned(),
                ..wish()
            },
        ),
        (
            "min_units",
            v1::RequestSpec {
                gang: false,
                hold_ms: 0,
                ..wish()
            },
        ),
        (
            "hold_ms",
            v1::RequestSpec {
                gang: false,
                min_units: 0,
                ..wish()
            },
        ),
        (
            "pools",
            v1::RequestSpec {
                pools: vec![long.clone()],
                ..wish()
            },
        ),
        (
            "pools",
            v1::RequestSpec {
                pools: vec!["p".to_owned(); NAMED + 1],
                ..wish()
            },
        ),
        (
            "labels",
            v1::RequestSpec {
                labels: [(String::new(), "x".to_owned())].into(),
                ..wish()
            },
        ),
        (
            "labels",
            v1::RequestSpec {
                labels: [("x".to_owned(), long)].into(),
                ..wish()
            },
        ),
    ] {
        assert_eq!(spec_from(wrong, NOW).expect_err(field).0, field);
    }
}
