//! Whose turn it is: by priority, then first come, first served, wave after wave (`rules::waves`). Within a wave gangs come
//! first, by age, then single units, the largest first: that packs best, and nobody there has waited longer to speak of.
//!
//! Called by `plan`. A wave that is served again before its nodes are there has the same places again, whatever came
//! since: what comes later takes only what it leaves.

use super::grow;
use super::state::Work;
use crate::model::UnixMs;
use crate::rules::waves;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Classes of one priority.
#[derive(Default)]
pub(super) struct Level {
    /// The oldest first.
    pub waves: Vec<Wave>,
    /// All of them, by age, then index.
    pub gangs: Vec<usize>,
    /// All of them, in the order of the waves.
    pub singles: Vec<usize>,
}

/// Classes whose turn it is together. Waves of gangs alone are one with the wave after them: gangs go by age anyhow.
#[derive(Default)]
pub(super) struct Wave {
    /// By age, then index.
    pub gangs: Vec<usize>,
    /// Largest first, then by age, then index.
    pub singles: Vec<usize>,
}

/// Highest priority first. Classes with a rule that Drover does not know are left out.
pub(super) fn levels(work: &Work<'_>) -> Vec<Level> {
    let (classes, now) = (&work.input.classes, work.input.now);
    let mut all: BTreeMap<Reverse<i32>, BTreeMap<UnixMs, Wave>> = BTreeMap::new();
    for (i, class) in classes.iter().enumerate() {
        if class.count == 0 || work.unknown_rule(i) {
            continue;
        }
        let level = all.entry(Reverse(class.priority)).or_default();
        let wave = level.entry(waves::wave(class.submitted, now)).or_default();
        if class.gang.is_some() {
            wave.gangs.push(i);
        } else {
            wave.singles.push(i);
        }
    }
    let level = |waves: BTreeMap<UnixMs, Wave>| {
        let mut level = Level::default();
        for mut wave in waves.into_values() {
            wave.gangs.sort_by_key(|i| (classes[*i].submitted, *i));
            let key = |i: &usize| (grow::size_key(&classes[*i]), classes[*i].submitted, *i);
            wave.singles.sort_by_key(key);
            level.gangs.extend(&wave.gangs);
            level.singles.extend(&wave.singles);
            match level
                .waves
                .last_mut()
                .filter(|last| last.singles.is_empty())
            {
                Some(last) => {
                    last.gangs.append(&mut wave.gangs);
                    last.singles = wave.singles;
                }
                None => level.waves.push(wave),
            }
        }
        level
    };
    all.into_values().map(level).collect()
}
