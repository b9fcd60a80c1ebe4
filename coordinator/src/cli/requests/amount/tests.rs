//! Tests of `requests create`: what flags make of a request, and what is refused with which fix.

use super::*;
use crate::cli::requests::place::{spread_shown, toleration_shown};
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    create: Create,
}

fn spec(line: &str) -> Result<v1::RequestSpec, String> {
    let words = ["create"].into_iter().chain(line.split_whitespace());
    let matches = Line::command()
        .try_get_matches_from(words)
        .map_err(|e| e.to_string())?;
    Line::from_arg_matches(&matches)
        .map_err(|e| e.to_string())?
        .create
        .spec()
}

#[test]
fn the_fields_own_request() {
    let s = spec("--gpus 60 --gpu-model titan-x --for 8h --gang --min 60 --locality site")
        .expect("spec");
    assert_eq!((s.units, s.gpus_per_unit, s.min_units), (60, 1, 60));
    assert_eq!(
        (s.duration_ms, s.locality.as_str(), s.gang),
        (28_800_000, "site", true)
    );
    let s = spec("--gpus 1600 --gpus-per-unit 16 --gang --min 800").expect("spec");
    assert_eq!((s.units, s.gpus_per_unit, s.min_units), (100, 16, 50));
}

#[test]
fn totals_are_cut_into_equal_units() {
    for (line, units, gpus, cpus, memory) in [
        (
            "--gpus 60 --cpus 120 --memory 600GiB",
            60,
            1,
            2_000,
            10 << 30,
        ),
        ("--gpus 8 --units 2", 2, 4, 0, 0),
        ("--cpus 32", 1, 0, 32_000, 0),
        ("--cpus 32 --cpus-per-unit 8", 4, 0, 8_000, 0),
        ("--cpus 8 --memory 64GiB", 1, 0, 8_000, 64 << 30),
        ("--memory 64GiB --memory-per-unit 16GiB", 4, 0, 0, 16 << 30),
        ("--units 3 --cpus-per-unit 0.5", 3, 0, 500, 0),
        ("--gpus 4 --cpus-per-unit 2", 4, 1, 2_000, 0),
    ] {
        let s = spec(line).expect(line);
        let got = (
            s.units,
            s.gpus_per_unit,
            s.milli_cpus_per_unit,
            s.memory_bytes_per_unit,
        );
        assert_eq!(got, (units, gpus, cpus, memory), "{line}");
        assert!(!s.whole_nodes, "{line}");
    }
    let s = spec("--nodes 4 --gpu-model k80 --priority -5 -l a=b --label c=").expect("nodes");
    assert!(s.whole_nodes && !s.gang);
    assert_eq!((s.units, s.gpus_per_unit, s.priority), (4, 0, -5));
    assert_eq!(s.labels.len(), 2);
}

#[test]
fn what_and_where_is_said_in_full() {
    let s = spec(
        "--gpu-milli 250 --units 4 --team vision --max-wait 10m --deadline 2h --min 2 \
         --label disk=ssd,gen>4 --label !slow -l disk=ssd|nvme --preferred-label 50:rack=r1 \
         --preferred-label fast --toleration dedicated=ml --toleration gpu --spread zone:2:soft \
         --spread example.org/rack",
    )
    .expect("spec");
    assert_eq!(
        (s.units, s.gpu_milli_per_unit, s.gpus_per_unit),
        (4, 250, 0)
    );
    assert!(s.gang, "--min makes an elastic gang");
    assert_eq!((s.min_units, s.team.as_str()), (2, "vision"));
    assert_eq!((s.max_wait_ms, s.deadline_in_ms), (600_000, 7_200_000));
    assert_eq!(s.labels["disk"], "ssd");
    let rules: Vec<&str> = s.label_rules.iter().map(|rule| rule.op.as_str()).collect();
    assert_eq!(rules, ["above", "absent", "in"]);
    let weights: Vec<u32> = s.preferred.iter().map(|wish| wish.weight).collect();
    assert_eq!(weights, [50, 1]);
    let shown: Vec<String> = s.tolerations.iter().map(toleration_shown).collect();
    assert_eq!(shown, ["dedicated=ml", "gpu"]);
    let shown: Vec<String> = s.spread.iter().map(spread_shown).collect();
    assert_eq!(shown, ["zone:2:soft", "example.org/rack"]);
    let s = spec("--gpus 1 --deadline 2026-05-01T18:00:00Z").expect("spec");
    assert_eq!(s.deadline_unix_ms, Some(1_777_658_400_000));
}

#[test]
fn nonsense_is_told_with_the_fix() {
    for (line, needle) in [
        ("", "required"),
        ("--gpus 0", "at least 1"),
        ("--gpus 10 --gpus-per-unit 4", "multiple"),
        ("--gpus 10 --gpus-per-unit 0", "at least 1"),
        (
            "--gpus 10 --units 5 --gpus-per-unit 3",
            "leave one of them out",
        ),
        ("--gpus 10 --units 3", "multiple of 3"),
        ("--units 5", "a unit is nothing"),
        ("--gpus 4 --nodes 2", "cannot be used with"),
        ("--gpus 4 --hold 5m", "--gang"),
        ("--gpus 4 --gpu-milli 500", "cannot be used with"),
        ("--gpu-milli 1000", "1..=999"),
        ("--gpus 4 --deadline tomorrow", "a moment like"),
        ("--gpus 4 --max-wait 5", "no unit"),
        ("--gpus 4 --label gen>x", "no whole number"),
        ("--gpus 4 --preferred-label 0:a=b", "from 1 to 100"),
        ("--gpus 4 --toleration =x", "no taint"),
        ("--gpus 4 --spread zone:0", "no skew"),
        ("--gpus 4 --spread :2", "no topology"),
        ("--gpus 4 --gang --min 5", "at most"),
        ("--gpus 4 --gang --min 0", "at least 1"),
        (
            "--gpus 32 --gpus-per-unit 16 --gang --min 8",
            "multiple of the 16",
        ),
        ("--gpus 4 --for 8", "no unit"),
        ("--gpus 4 --for 0s", "no time"),
        ("--memory 64", "no unit"),
        ("--cpus 4 --gpu-model k80", "without GPUs"),
        ("--gpus 200000", "more than one request"),
        ("--gpus 4 --label =x", "key=value"),
        ("--gpus 4 --locality moon", "possible values"),
    ] {
        let error = spec(line).expect_err(line);
        assert!(error.contains(needle), "{line}: {error}");
    }
}
