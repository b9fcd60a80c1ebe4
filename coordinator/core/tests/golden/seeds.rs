//! Properties over seeds: the same ones on every run, so that a test that failed fails again. Each property has its own
//! few by default; `DROVER_SEEDS=FROM..TO` (or one seed) looks at others, says which fail and which take long, and goes
//! on after a failure. A seed replays alone: `DROVER_SEEDS=42 cargo test -p drover-core --test golden NAME`.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// One plan of a random fleet takes milliseconds; a seed that takes this long does not end.
const ENDLESS: Duration = Duration::from_secs(60);
/// Said of other seeds than the default ones.
const LONG: Duration = Duration::from_millis(400);

/// Looks at the seeds `0..count`, or at those that the environment names.
pub fn each(count: u64, property: fn(u64)) {
    match std::env::var("DROVER_SEEDS") {
        Ok(text) => look(range(&text), property, true),
        Err(_) => look(0..count, property, false),
    }
}

/// Looks at these, whatever the environment says.
pub fn all(seeds: &[u64], property: fn(u64)) {
    for seed in seeds {
        look(*seed..seed.saturating_add(1), property, false);
    }
}

fn range(text: &str) -> Range<u64> {
    let number = |text: &str| -> u64 {
        let wrong = "DROVER_SEEDS is FROM..TO or one seed";
        text.trim().replace('_', "").parse().expect(wrong)
    };
    match text.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => number(text)..number(text).saturating_add(1),
    }
}

/// A seed, how long it took, and whether the property held.
type Looked = (u64, Duration, bool);

fn look(seeds: Range<u64>, property: fn(u64), further: bool) {
    let mut bad: Vec<u64> = Vec::new();
    let mut next = seeds.start;
    let mut looked = start(next..seeds.end, property);
    while next < seeds.end {
        match looked.recv_timeout(ENDLESS) {
            Ok((seed, took, holds)) => {
                if further && took > LONG {
                    eprintln!("seed {seed} took {} ms", took.as_millis());
                }
                if !holds {
                    eprintln!("seed {seed} failed");
                    bad.push(seed);
                }
                next = seed + 1;
            }
            Err(RecvTimeoutError::Timeout) => {
                eprintln!("seed {next} does not end");
                bad.push(next);
                next += 1;
                looked = start(next..seeds.end, property);
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if !bad.is_empty() && !further {
            break;
        }
    }
    assert!(bad.is_empty(), "seeds {bad:?} failed");
    assert!(next >= seeds.end, "seeds from {next} on were not looked at");
}

/// On a thread of its own, so that one that does not end can be left behind.
fn start(seeds: Range<u64>, property: fn(u64)) -> Receiver<Looked> {
    let (say, looked) = channel();
    thread::spawn(move || {
        for seed in seeds {
            let began = Instant::now();
            let holds = catch_unwind(AssertUnwindSafe(|| property(seed))).is_ok();
            if say.send((seed, began.elapsed(), holds)).is_err() {
                return;
            }
        }
    });
    looked
}

#[test]
fn a_property_that_fails_or_never_ends_is_noticed() {
    let wrong = |seeds: Range<u64>, property| {
        let looked = catch_unwind(|| look(seeds, property, true));
        let why = looked.expect_err("it held");
        why.downcast_ref::<String>().cloned().unwrap_or_default()
    };
    look(0..3, |seed| assert!(seed < 3), true);
    assert_eq!(
        wrong(0..5, |seed| assert!(seed % 2 == 0)),
        "seeds [1, 3] failed"
    );
    assert_eq!(range("3..1_000"), 3..1000);
    assert_eq!(range("7"), 7..8);
}
