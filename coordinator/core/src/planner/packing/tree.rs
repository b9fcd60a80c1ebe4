//! Finds the first open node, in the order of opening, that may have room: a tree over nodes with the most of every
//! amount below each branch. Used by `packing`; what it finds is then looked at exactly.

use crate::planner::size::Size;

/// The best of what is below a branch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peak {
    pub cpu: u64,
    pub memory: u64,
    pub gpus: u32,
    /// Largest part of one GPU.
    pub share: u32,
    /// Kinds of places, by number modulo 64.
    pub kinds: u64,
    /// Counters that every node has at least one of, and at least two.
    pub one: u64,
    pub two: u64,
}

/// No node.
pub(super) const NOTHING: Peak = Peak {
    cpu: 0,
    memory: 0,
    gpus: 0,
    share: 0,
    kinds: 0,
    one: u64::MAX,
    two: u64::MAX,
};

impl Peak {
    fn or(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.max(other.cpu),
            memory: self.memory.max(other.memory),
            gpus: self.gpus.max(other.gpus),
            share: self.share.max(other.share),
            kinds: self.kinds | other.kinds,
            one: self.one & other.one,
            two: self.two & other.two,
        }
    }
}

/// What is looked for: less is of no use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Want {
    pub cpu: u64,
    pub memory: u64,
    pub gpus: u32,
    pub share: u32,
    pub kinds: u64,
    /// Counters of which a node must have none, and at most one.
    pub none: u64,
    pub one: u64,
}

impl Want {
    /// No room at all, of any kind.
    pub fn nothing() -> Self {
        Self::unit(&Size::default())
    }

    /// Room for one unit, of any kind.
    pub fn unit(unit: &Size) -> Self {
        Self {
            cpu: unit.cpu,
            memory: unit.memory,
            gpus: unit.gpus,
            share: unit.milli,
            kinds: u64::MAX,
            none: 0,
            one: 0,
        }
    }

    fn may(&self, peak: &Peak) -> bool {
        self.kinds & peak.kinds != 0
            && self.cpu <= peak.cpu
            && self.memory <= peak.memory
            && self.gpus <= peak.gpus
            && self.share <= peak.share
            && self.none & peak.one == 0
            && self.one & peak.two == 0
    }
}

/// The tree: leaves from the middle on, each branch before its two.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    peaks: Vec<Peak>,
}

impl Tree {
    fn leaves(&self) -> usize {
        self.peaks.len() / 2
    }

    /// Room for so many leaves.
    pub fn grow(&mut self, leaves: usize) {
        if leaves <= self.leaves() {
            return;
        }
        let (old, new) = (self.leaves(), leaves.next_power_of_two().max(16));
        let mut peaks = vec![NOTHING; 2 * new];
        peaks[new..new + old].copy_from_slice(&self.peaks[old..]);
        self.peaks = peaks;
        self.join();
    }

    /// Of these leaves.
    pub fn of(leaves: &[Peak]) -> Self {
        let mut tree = Self::default();
        if !leaves.is_empty() {
            let half = leaves.len().next_power_of_two().max(16);
            tree.peaks = vec![NOTHING; 2 * half];
            tree.peaks[half..half + leaves.len()].copy_from_slice(leaves);
            tree.join();
        }
        tree
    }

    /// Each branch anew from its two.
    fn join(&mut self) {
        for at in (1..self.leaves()).rev() {
            self.peaks[at] = self.peaks[2 * at].or(self.peaks[2 * at + 1]);
        }
    }

    /// Sets one leaf.
    pub fn set(&mut self, leaf: usize, peak: Peak) {
        self.grow(leaf + 1);
        let mut at = self.leaves() + leaf;
        self.peaks[at] = peak;
        while at > 1 {
            at /= 2;
            self.peaks[at] = self.peaks[2 * at].or(self.peaks[2 * at + 1]);
        }
    }

    /// The first leaf from `from` on that may do.
    pub fn find(&self, from: usize, want: &Want) -> Option<usize> {
        let leaves = self.leaves();
        if from >= leaves {
            return None;
        }
        let mut at = leaves + from;
        loop {
            if want.may(&self.peaks[at]) {
                if at >= leaves {
                    return Some(at - leaves);
                }
                at *= 2;
                continue;
            }
            // The next branch to the right.
            while at & 1 == 1 {
                at /= 2;
            }
            if at == 0 {
                return None;
            }
            at += 1;
        }
    }

    /// The last leaf before `to` that may do.
    pub fn find_last(&self, to: usize, want: &Want) -> Option<usize> {
        let leaves = self.leaves();
        if to == 0 || leaves == 0 {
            return None;
        }
        let mut at = leaves + to.min(leaves) - 1;
        loop {
            if want.may(&self.peaks[at]) {
                if at >= leaves {
                    return Some(at - leaves);
                }
                at = 2 * at + 1;
                continue;
            }
            // The next branch to the left.
            while at > 1 && at & 1 == 0 {
                at /= 2;
            }
            if at <= 1 {
                return None;
            }
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(cpu: u64, one: u64) -> Peak {
        Peak {
            cpu,
            memory: cpu,
            kinds: 1,
            one,
            two: 0,
            ..NOTHING
        }
    }

    #[test]
    fn finds_the_first_that_may_do() {
        let mut tree = Tree::default();
        let cpus = [1, 5, 3, 9, 2, 7, 4, 8, 6, 1, 1, 1, 1, 1, 1, 1, 1, 9];
        for (at, cpu) in cpus.iter().enumerate() {
            tree.set(at, leaf(*cpu, u64::from(at % 2 == 0)));
        }
        for from in 0..=cpus.len() {
            for cpu in 0..11 {
                for none in [0, 1] {
                    let want = Want {
                        cpu,
                        memory: 0,
                        gpus: 0,
                        share: 0,
                        kinds: 1,
                        none,
                        one: 0,
                    };
                    let plain = (from..cpus.len())
                        .find(|at| cpus[*at] >= cpu && (none == 0 || at % 2 == 1));
                    assert_eq!(tree.find(from, &want), plain, "{from} {cpu} {none}");
                    let last = (0..from)
                        .rev()
                        .find(|at| cpus[*at] >= cpu && (none == 0 || at % 2 == 1));
                    assert_eq!(tree.find_last(from, &want), last, "{from} {cpu} {none}");
                }
            }
        }
    }
}
