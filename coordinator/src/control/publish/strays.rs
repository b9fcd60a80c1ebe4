//! Pools that the config does not have and the store does: orphaned ones, and groups that a person adopts and that are not
//! owned yet.
//!
//! Called by `publish`. Decides nothing: an orphaned pool is reported, never drained.

use crate::config::Discover;
use crate::control::cycle::{Control, Round};
use crate::control::view::PoolView;
use crate::records::AdoptionRecord;
use drover_core::model::{Mode, PoolId};
use std::collections::BTreeSet;

/// Of a pool that neither the config file nor discovery names.
pub(super) const ORPHANED: &str =
    "no longer in the config file, nor discovered: reported, never drained";

impl Control {
    /// Pools that nodes, launches or settings name and the config does not. Not those that are being adopted and have
    /// nothing yet.
    pub(super) fn orphans(&self, round: &Round) -> BTreeSet<PoolId> {
        let of = self.not_in_config(round);
        of.into_iter()
            .filter(|pool| adoption(round, pool).is_none())
            .collect()
    }

    /// They, and groups that are to become pools.
    pub(super) fn stray_views(&self, round: &Round) -> Vec<PoolView> {
        let all = self.not_in_config(round).into_iter();
        all.map(|name| match adoption(round, &name) {
            Some(record) => PoolView {
                holds: vec![self.not_owned(record)],
                ..stray_view(round, &name, false)
            },
            None => stray_view(round, &name, true),
        })
        .collect()
    }

    fn not_in_config(&self, round: &Round) -> BTreeSet<PoolId> {
        let has = in_use(round);
        has.into_iter()
            .chain(round.ledger.pools.keys().cloned())
            .filter(|pool| self.config.pool(pool).is_none())
            .collect()
    }

    /// What makes a pool of a group that is being adopted.
    fn not_owned(&self, record: &AdoptionRecord) -> String {
        let looks = |place: &&Discover| {
            place.role_arn == record.role && place.regions.contains(&record.region)
        };
        let found = self.config.aws.discover.iter().find(looks);
        let (group, region) = (&record.group, &record.region);
        let tag = "tag it drover:owner=unclaimed";
        match found {
            Some(_) => format!(
                "not owned yet: group {group} in {region} is no pool; {tag}, discovery finds it within {} s",
                self.config.aws.discover_every.0 / 1_000
            ),
            None => format!(
                "not owned yet: group {group} in {region} is no pool; name it in a [[pool]] of the config file (`drover pools \
                 adopt` prints the table) and {tag}"
            ),
        }
    }
}

/// Pools that nodes or launches name.
fn in_use(round: &Round) -> BTreeSet<PoolId> {
    let nodes = round.ledger.nodes.values();
    let launches = round.ledger.launches.values();
    nodes
        .filter_map(|held| held.value.pool.clone())
        .chain(launches.map(|held| held.value.pool.clone()))
        .collect()
}

/// The adoption of a group that never was a pool here: nothing of it is in our books.
fn adoption<'a>(round: &'a Round, pool: &PoolId) -> Option<&'a AdoptionRecord> {
    let record = &round.ledger.adoptions.get(pool)?.value;
    let begins = record.left.is_none() && record.last.is_none();
    (begins && !in_use(round).contains(pool)).then_some(record)
}

fn stray_view(round: &Round, name: &PoolId, orphaned: bool) -> PoolView {
    let nodes = round
        .ledger
        .nodes
        .values()
        .filter(|held| held.value.pool.as_ref() == Some(name))
        .count();
    PoolView {
        name: name.clone(),
        kind: None,
        site: None,
        mode: Mode::Observe,
        min: 0,
        max: 0,
        config_max: None,
        spare: 0,
        nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
        ready: 0,
        idle: 0,
        draining: 0,
        coming: 0,
        unreachable: 0,
        unmanaged: 0,
        paused: Vec::new(),
        stopped: Vec::new(),
        holds: vec![ORPHANED.to_owned()],
        missed: 0,
        frozen: None,
        read_error: None,
        offerings: Vec::new(),
        reasons: Vec::new(),
        remarks: Vec::new(),
        origin: String::new(),
        orphaned,
        misses: 0,
        launches: round
            .ledger
            .launches
            .values()
            .filter(|held| held.value.pool == *name)
            .map(|held| held.value.clone())
            .collect(),
    }
}
