//! Labels and taints of a pool's nodes: what the provider says of them, with the config's over it.
//!
//! Called by the join and by the planner's input, so that a node and the offering it came from match alike. Pure.

use crate::config::PoolConfig;
use crate::ports::actuate::PoolReading;
use std::collections::BTreeMap;

/// Labels of the pool's nodes.
#[must_use]
pub fn labels(pool: &PoolConfig, reading: Option<&PoolReading>) -> BTreeMap<String, String> {
    over(reading.map(|reading| &reading.labels), &pool.labels)
}

/// Taints of the pool's nodes.
#[must_use]
pub fn taints(pool: &PoolConfig, reading: Option<&PoolReading>) -> BTreeMap<String, String> {
    over(reading.map(|reading| &reading.taints), &pool.taints)
}

fn over(
    told: Option<&BTreeMap<String, String>>,
    config: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut all = config.clone();
    for (key, value) in told.into_iter().flatten() {
        all.entry(key.clone()).or_insert_with(|| value.clone());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_wins_over_what_the_provider_says() {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            pairs.iter().map(own).collect()
        };
        let told = map(&[("team", "vision"), ("disk", "fast")]);
        let config = map(&[("team", "nlp")]);
        let both = map(&[("team", "nlp"), ("disk", "fast")]);
        assert_eq!(over(Some(&told), &config), both);
        assert_eq!(over(None, &config), config);
    }
}
