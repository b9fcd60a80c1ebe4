//! The nodes and pods of openb, and the order in which a seed lets pods arrive.
//!
//! Called by the example. Columns are found by their names; a row that is wrong names itself.

use std::collections::BTreeMap;
use std::path::Path;

/// A GPU node.
pub(crate) struct Node {
    pub cpu: u64,
    pub mib: u64,
    pub gpus: u32,
    pub model: String,
}

/// A pod: whole GPUs, or thousandths of one.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Pod {
    pub cpu: u64,
    pub mib: u64,
    pub gpus: u32,
    pub milli: u32,
    /// Models that it accepts; empty: any.
    pub models: Vec<String>,
}

impl Pod {
    /// Thousandths of GPUs.
    pub fn load(&self) -> u64 {
        u64::from(self.gpus) * 1_000 + u64::from(self.milli)
    }
}

/// Nodes and the pods to draw from.
pub(crate) struct Cluster {
    pub nodes: Vec<Node>,
    pub pods: Vec<Pod>,
}

impl Cluster {
    /// Reads the nodes with GPUs and all pods of a list.
    pub fn read(folder: &Path, list: &str) -> Result<Self, String> {
        let node = |row: &Row<'_>| {
            Ok(Node {
                cpu: row.number("cpu_milli")?,
                mib: row.number("memory_mib")?,
                gpus: small(row.number("gpu")?)?,
                model: row.text("model")?.to_owned(),
            })
        };
        let pod = |row: &Row<'_>| {
            let gpus = small(row.number("num_gpu")?)?;
            let milli = small(row.number("gpu_milli")?)?;
            let shares = gpus == 1 && milli < 1_000;
            let models = row.text("gpu_spec")?.split('|').filter(|m| !m.is_empty());
            Ok(Pod {
                cpu: row.number("cpu_milli")?,
                mib: row.number("memory_mib")?,
                gpus: if shares { 0 } else { gpus },
                milli: if shares { milli } else { 0 },
                models: models.map(str::to_owned).collect(),
            })
        };
        let mut nodes: Vec<Node> = rows(&folder.join("openb_node_list_all_node.csv"), node)?;
        nodes.retain(|node| node.gpus > 0);
        let pods = rows(&folder.join(format!("openb_pod_list_{list}.csv")), pod)?;
        Ok(Self { nodes, pods })
    }

    /// Thousandths of all GPUs.
    pub fn capacity(&self) -> u64 {
        self.nodes.iter().map(|n| u64::from(n.gpus) * 1_000).sum()
    }

    /// The pods and as many more as bring the GPU requests to 130 % of the capacity, shuffled.
    pub fn arrivals(&self, dice: &mut Dice) -> Vec<&Pod> {
        let mut all: Vec<&Pod> = self.pods.iter().collect();
        let mut load: u64 = all.iter().map(|pod| pod.load()).sum();
        while load * 10 < self.capacity() * 13 {
            let pod = &self.pods[dice.below(self.pods.len())];
            load += pod.load();
            all.push(pod);
        }
        for at in (1..all.len()).rev() {
            all.swap(at, dice.below(at + 1));
        }
        all
    }
}

/// SplitMix64: one seed, one order.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let z = u128::from(z ^ (z >> 31));
        usize::try_from((z * bound as u128) >> 64).expect("below the bound")
    }
}

fn small(number: u64) -> Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("{number} is too large"))
}

/// A row with its columns by name.
struct Row<'a> {
    columns: &'a BTreeMap<&'a str, usize>,
    cells: Vec<&'a str>,
}

impl Row<'_> {
    fn text(&self, name: &str) -> Result<&str, String> {
        let at = self.columns.get(name);
        let cell = at.and_then(|at| self.cells.get(*at));
        cell.copied().ok_or_else(|| format!("no {name}"))
    }

    fn number(&self, name: &str) -> Result<u64, String> {
        let text = self.text(name)?;
        text.parse()
            .map_err(|_| format!("{name}: {text:?} is no whole number"))
    }
}

fn rows<T>(path: &Path, make: impl Fn(&Row<'_>) -> Result<T, String>) -> Result<Vec<T>, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|why| format!("{shown}: {why}"))?;
    let mut lines = text.lines().enumerate();
    let (_, header) = lines.next().ok_or_else(|| format!("{shown} is empty"))?;
    let columns = header
        .split(',')
        .enumerate()
        .map(|(at, name)| (name, at))
        .collect();
    lines
        .map(|(at, line)| {
            let row = Row {
                columns: &columns,
                cells: line.split(',').collect(),
            };
            make(&row).map_err(|why| format!("{shown}, line {}: {why}", at + 1))
        })
        .collect()
}
