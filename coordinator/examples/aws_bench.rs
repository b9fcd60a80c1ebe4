//! What `cargo xtask bench aws` measures: the real control cycle and the real driver of Auto Scaling groups over an AWS of
//! plain values (`aws_bench/cloud.rs`), one JSON object a figure.
//!
//! Figures in seconds of the real clock are those of the whole loop (`control::run`), with a delay for every call; figures
//! over hours are on a clock that is moved by hand, a cycle every ten seconds. Everything is asserted before it is printed.

#[path = "aws_bench/cases.rs"]
mod cases;
#[path = "aws_bench/cloud.rs"]
mod cloud;
#[path = "aws_bench/fleet.rs"]
mod fleet;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        for (way, by_desired) in [("LaunchInstances", false), ("SetDesiredCapacity", true)] {
            let seen = cases::shortage_to_next_pool(by_desired).await;
            figure(
                &format!("shortage visible to next pool asked, {way}, p50"),
                seen.p50_ms,
                "ms",
                None,
            );
            figure(
                &format!("shortage visible to next pool asked, {way}, p99"),
                seen.p99_ms,
                "ms",
                Some(2_000.0),
            );
            figure(
                &format!("lost demand, {way}"),
                f64::from(seen.lost),
                "units",
                Some(0.0),
            );
        }
        let zero = cases::thousand_from_zero().await;
        figure(
            "1,000 instances from zero: launch calls of the group",
            f64::from(zero.calls),
            "calls",
            Some(10.0),
        );
        figure(
            "1,000 instances from zero: duplicate requests",
            f64::from(zero.duplicates),
            "calls",
            Some(0.0),
        );
        figure(
            "1,000 instances from zero: all asked",
            zero.took_ms,
            "ms",
            None,
        );
        let storm = cases::sustained_shortage().await;
        figure(
            "600 asked in two hours, one offering of four short: attempts on it",
            f64::from(storm.attempts),
            "calls",
            Some(20.0),
        );
        figure(
            "the same: instances of the other offerings",
            f64::from(storm.served),
            "instances",
            None,
        );
        figure(
            "the same: units not asked for in the cycle after they came",
            f64::from(storm.late),
            "units",
            Some(0.0),
        );
        for (what, rate, limit) in cases::describes_at_200_groups().await {
            figure(
                &format!("200 groups: {what} a minute"),
                rate,
                "calls",
                limit,
            );
        }
    });
}

/// Prints one figure; `target` is the most that is allowed.
fn figure(case: &str, value: f64, unit: &str, target: Option<f64>) {
    let mut line = serde_json::json!({ "case": case, "value": value, "unit": unit });
    line["target"] = serde_json::json!(target);
    println!("{line}");
}
