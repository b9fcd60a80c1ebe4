//! GPUs that are left when a cluster fills up and nothing leaves: one JSON object a line, with the target where there is
//! one. `static_packing DIR [SEEDS [PART]]`: DIR holds `openb_node_list_all_node.csv` and the two pod lists; only cases
//! whose name contains PART.
//!
//! Built and run by `cargo xtask bench traces`. The set-up of fragmentation gradient descent (Weng et al., USENIX
//! ATC'23): the GPU nodes; to the pods more are drawn with replacement until the GPU requests reach 130 % of the
//! capacity; all are shuffled and placed one by one; what does not fit is dropped. CPU, memory, shares of one GPU and the
//! GPU model bind. The figure is taken when the arrived load reaches 100 %. With the planner each arrival is one
//! `planner::plan` on all nodes, after `rules::learn` has counted it. Best fit and random are there to check the set-up
//! against their published figures.

#[path = "static_packing/place.rs"]
mod place;
#[path = "static_packing/trace.rs"]
mod trace;

use place::Placer;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use trace::Cluster;

#[derive(Serialize)]
struct Figure {
    case: String,
    value: f64,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<f64>,
}

/// A pod list, a placer, and the published figure: for the planner that of FGD, which it must reach.
struct Case {
    list: &'static str,
    placer: Placer,
    published: f64,
}

const CASES: [Case; 6] = [
    Case {
        list: "default",
        placer: Placer::Planner,
        published: 297.0,
    },
    Case {
        list: "gpuspec33",
        placer: Placer::Planner,
        published: 756.0,
    },
    Case {
        list: "default",
        placer: Placer::BestFit,
        published: 443.0,
    },
    Case {
        list: "gpuspec33",
        placer: Placer::BestFit,
        published: 1_218.0,
    },
    Case {
        list: "default",
        placer: Placer::Random,
        published: 851.0,
    },
    Case {
        list: "gpuspec33",
        placer: Placer::Random,
        published: 1_002.0,
    },
];

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(folder) = args.next().map(PathBuf::from) else {
        eprintln!("usage: static_packing DIR [SEEDS [PART]]");
        return ExitCode::from(64);
    };
    let seeds: u64 = args.next().and_then(|text| text.parse().ok()).unwrap_or(10);
    let part = args.next().unwrap_or_default();
    for case in &CASES {
        let name = format!(
            "openb static packing, {}, {}",
            case.list,
            case.placer.name()
        );
        if !name.contains(&part) {
            continue;
        }
        match Cluster::read(&folder, case.list) {
            Ok(cluster) => run(case, &name, &cluster, seeds.max(1)),
            Err(why) => {
                eprintln!("static_packing: {why}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// One figure for each seed, then the mean. Two threads: seeds do not see each other.
fn run(case: &Case, name: &str, cluster: &Cluster, seeds: u64) {
    let next = AtomicU64::new(0);
    let found = Mutex::new(vec![None; usize::try_from(seeds).expect("a few seeds")]);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        break;
                    }
                    let left = place::fill(cluster, case.placer, seed);
                    let at = usize::try_from(seed).expect("a few seeds");
                    found.lock().expect("no panics")[at] = Some(left);
                }
            });
        }
    });
    let filled: Vec<place::Filled> = found
        .into_inner()
        .expect("no panics")
        .into_iter()
        .flatten()
        .collect();
    for (seed, filled) in filled.iter().enumerate() {
        print(Figure {
            case: format!("{name}, seed {seed}"),
            value: filled.left,
            unit: "GPUs",
            target: None,
        });
    }
    let target = matches!(case.placer, Placer::Planner).then_some(case.published);
    let published = if target.is_none() {
        format!(" (published: {})", case.published)
    } else {
        String::new()
    };
    print(Figure {
        case: format!("{name}, mean of {seeds} seeds{published}"),
        value: filled.iter().map(|f| f.left).sum::<f64>() / seeds as f64,
        unit: "GPUs",
        target,
    });
    print(Figure {
        case: format!("{name}, dropped of pods with 8 GPUs, mean of {seeds} seeds"),
        value: filled.iter().map(|f| f.large_dropped).sum::<f64>() / seeds as f64,
        unit: "GPUs",
        target: None,
    });
}

fn print(figure: Figure) {
    println!(
        "{}",
        serde_json::to_string(&figure).expect("a figure is plain data")
    );
}
