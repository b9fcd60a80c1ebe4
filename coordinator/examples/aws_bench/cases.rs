//! The cases. Each builds its world, plays it, asserts what must hold and gives its figures.

use crate::cloud::{Cloud, Made};
use crate::fleet::{Pool, ask, coordinator};
use drover::adapters::clock::{ManualClock, SystemClock};
use drover::control::run;
use drover::ports::clock::Clock;
use drover_core::model::{Millis, UnixMs};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// What a call of AWS takes in the cases on the real clock.
const DELAY: Duration = Duration::from_millis(60);
/// Shortages that are met in a row.
const ROUNDS: usize = 40;
/// A bench that waits longer than this for one thing has failed.
const PATIENCE: Duration = Duration::from_secs(60);

fn pool(name: String, region: &'static str, price: f64, max: u32) -> Pool {
    Pool {
        name,
        region,
        price,
        max,
    }
}

/// Waits for a condition.
async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(
            begun.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// From a shortage that shows in the API to the next pool's being asked.
pub struct FailOver {
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Units of which no pool was asked in the end.
    pub lost: u32,
}

/// The cheap pool of each pair is dry, the dear one is not; each shortage is met anew.
pub async fn shortage_to_next_pool(by_desired: bool) -> FailOver {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let cloud = Cloud::new(clock.clone(), DELAY);
    let mut pools = Vec::new();
    for n in 0..ROUNDS {
        cloud.group(&format!("dry-{n}"), "us-east-1a", 100, Some(0), by_desired);
        cloud.group(&format!("wet-{n}"), "us-west-2a", 100, None, by_desired);
        pools.push(pool(format!("dry-{n}"), "us-east-1", 1.0, 100));
        pools.push(pool(format!("wet-{n}"), "us-west-2", 2.0, 100));
    }
    let (control, commands, asks) = coordinator(&pools, &cloud, &clock).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(run::run(control, asks, async {
        let _ = stopped.await;
    }));
    until("every group is read", || {
        let view = commands.view();
        view.pools.len() == 2 * ROUNDS && view.pools.iter().all(|pool| !pool.offerings.is_empty())
    })
    .await;
    let call = if by_desired {
        "SetDesiredCapacity"
    } else {
        "LaunchInstances"
    };
    let of = |made: &Made, group: &str| made.call == call && made.group == group;
    let mut took = Vec::new();
    let mut lost = 0;
    for n in 0..ROUNDS {
        let (dry, wet) = (format!("dry-{n}"), format!("wet-{n}"));
        ask(&commands, &format!("job-{n}"), 3, &[&dry, &wet]).await;
        until(&format!("{wet} is asked"), || {
            cloud.world().made.iter().any(|made| of(made, &wet))
        })
        .await;
        let world = cloud.world();
        let find = |group: &str| {
            world
                .made
                .iter()
                .find(|made| of(made, group))
                .expect("asked")
        };
        let (short, served) = (find(&dry), find(&wet));
        assert_eq!((short.count, short.granted), (3, 0), "{short:?}");
        lost += 3 - served.granted.min(3);
        took.push(served.at.0.saturating_sub(short.at.1));
    }
    let _ = stop.send(());
    running.await.expect("it ends").expect("it led to its end");
    took.sort_unstable();
    let at = |percent: usize| {
        let place = (took.len() * percent).div_ceil(100).max(1) - 1;
        f64::from(u32::try_from(took[place]).unwrap_or(u32::MAX))
    };
    FailOver {
        p50_ms: at(50),
        p99_ms: at(99),
        lost,
    }
}

/// A thousand from nothing.
pub struct FromZero {
    pub calls: u32,
    pub duplicates: u32,
    pub took_ms: f64,
}

/// One request for 1,000 units, one group.
pub async fn thousand_from_zero() -> FromZero {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let cloud = Cloud::new(clock.clone(), DELAY);
    cloud.group("big", "us-east-1a", 1_000, None, false);
    let pools = [pool("big".to_owned(), "us-east-1", 1.0, 1_000)];
    let (control, commands, asks) = coordinator(&pools, &cloud, &clock).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(run::run(control, asks, async {
        let _ = stopped.await;
    }));
    until("the group is read", || {
        commands
            .view()
            .pools
            .iter()
            .all(|pool| !pool.offerings.is_empty())
            && !commands.view().pools.is_empty()
    })
    .await;
    let begun = Instant::now();
    ask(&commands, "job", 1_000, &[]).await;
    let granted = || -> u32 {
        let world = cloud.world();
        world
            .made
            .iter()
            .filter(|made| made.call == "LaunchInstances")
            .map(|made| made.granted)
            .sum()
    };
    until("all are launched", || granted() >= 1_000).await;
    let took = begun.elapsed();
    // A while longer: nothing more is asked.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let _ = stop.send(());
    running.await.expect("it ends").expect("it led to its end");
    assert_eq!(granted(), 1_000);
    let world = cloud.world();
    let calls: Vec<&Made> = world
        .made
        .iter()
        .filter(|made| made.call == "LaunchInstances")
        .collect();
    let tokens: BTreeSet<&String> = calls.iter().map(|made| &made.token).collect();
    FromZero {
        calls: u32::try_from(calls.len()).expect("few"),
        duplicates: u32::try_from(calls.len() - tokens.len()).expect("few"),
        took_ms: took.as_secs_f64() * 1_000.0,
    }
}

/// Two hours of demand while one of four offerings is short.
pub struct Storm {
    pub attempts: u32,
    pub served: u32,
    pub late: u32,
}

/// Five units a minute for two hours, on a clock moved by hand; the short offering is the cheapest, so that it is preferred
/// whenever its memory allows.
pub async fn sustained_shortage() -> Storm {
    let hand = Arc::new(ManualClock::at(UnixMs(1_800_000_000_000)));
    hand.advance(Millis::seconds(1_000));
    let clock: Arc<dyn Clock> = hand.clone();
    let cloud = Cloud::new(clock.clone(), Duration::ZERO);
    let mut pools = Vec::new();
    for (n, zone) in ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d"]
        .iter()
        .enumerate()
    {
        let left = (n == 0).then_some(0);
        cloud.group(&format!("zone-{n}"), zone, 1_000, left, false);
        let dearer = f64::from(u32::try_from(n).expect("few"));
        // No pool holds it all: the others share it.
        pools.push(pool(
            format!("zone-{n}"),
            "us-east-1",
            1.0 + dearer / 10.0,
            220,
        ));
    }
    let (mut control, commands, _asks) = coordinator(&pools, &cloud, &clock).await;
    control.repeatable(7);
    let mut asked: u32 = 0;
    let mut late = 0;
    let granted = || -> u32 {
        let world = cloud.world();
        world.made.iter().map(|made| made.granted).sum()
    };
    for step in 0..(2 * 60 * 6) {
        hand.advance(Millis::seconds(10));
        // Agents have had time to return, and the groups were read.
        if step >= 6 && step % 6 == 0 && asked < 595 {
            ask(&commands, &format!("job-{step}"), 5, &[]).await;
            asked += 5;
        }
        let mut cycles = 0;
        while control.cycle().await.expect("a cycle") {
            cycles += 1;
            assert!(cycles < 30, "cycles come to rest");
        }
        late += asked - granted().min(asked);
    }
    ask(&commands, "last", 600 - asked, &[]).await;
    hand.advance(Millis::seconds(10));
    while control.cycle().await.expect("a cycle") {}
    let world = cloud.world();
    let attempts = world
        .made
        .iter()
        .filter(|made| made.call == "LaunchInstances" && made.group == "zone-0")
        .count();
    drop(world);
    let served = granted();
    assert_eq!(served, 600, "every unit was asked for, and none twice");
    Storm {
        attempts: u32::try_from(attempts).expect("few"),
        served,
        late,
    }
}

/// Calls a minute that describe, at 200 groups of 10 members in one region: at rest, and while 20 groups grow by
/// SetDesiredCapacity and do not follow. With what is allowed, where AWS or our default says it.
pub async fn describes_at_200_groups() -> Vec<(String, f64, Option<f64>)> {
    let hand = Arc::new(ManualClock::at(UnixMs(1_800_000_000_000)));
    hand.advance(Millis::seconds(1_000));
    let clock: Arc<dyn Clock> = hand.clone();
    let cloud = Cloud::new(clock.clone(), Duration::ZERO);
    let mut pools = Vec::new();
    for n in 0..200 {
        let short = n < 20;
        cloud.group(
            &format!("g-{n:03}"),
            "us-east-1a",
            100,
            short.then_some(0),
            short,
        );
        pools.push(pool(format!("g-{n:03}"), "us-east-1", 1.0, 100));
    }
    let (mut control, commands, _asks) = coordinator(&pools, &cloud, &clock).await;
    control.repeatable(7);
    for n in 20..200 {
        ask(&commands, &format!("all-{n}"), 10, &[&format!("g-{n:03}")]).await;
    }
    let mut cycle = async |seconds: u64| {
        for _ in 0..seconds {
            hand.advance(Millis::seconds(1));
            let mut cycles = 0;
            while control.cycle().await.expect("a cycle") && cycles < 30 {
                cycles += 1;
            }
        }
    };
    cycle(20).await;
    let names = [
        "DescribeAutoScalingGroups",
        "DescribeScalingActivities",
        "DescribeInstances",
    ];
    let count = |call: &str| cloud.calls(call);
    let mut figures = Vec::new();
    let mut before = names.map(count);
    cycle(60).await;
    for (name, before) in names.iter().zip(before) {
        let rate = f64::from(count(name) - before);
        figures.push((format!("{name}, at rest"), rate, limit(name)));
    }
    for n in 0..20 {
        ask(&commands, &format!("short-{n}"), 1, &[&format!("g-{n:03}")]).await;
    }
    before = names.map(count);
    cycle(60).await;
    for (name, before) in names.iter().zip(before) {
        let rate = f64::from(count(name) - before);
        figures.push((format!("{name}, 20 groups short"), rate, limit(name)));
    }
    figures
}

/// Calls a minute that are allowed for long: EC2 publishes its bucket for describes (20 a second), Auto Scaling none.
fn limit(call: &str) -> Option<f64> {
    (call == "DescribeInstances").then_some(1_200.0)
}
