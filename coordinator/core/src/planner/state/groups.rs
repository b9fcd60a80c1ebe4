//! New nodes of a run, by offer: an attempt may use a few offers, and a fleet has hundreds. Part of `Work`; changed by
//! `grow::commit` alone.

use super::Group;

/// Groups of new nodes. What they are in an attempt (`leaf` from zero on, `origin`) means nothing here: `leaf` is where
/// the first node stands among all that the run opened, and stays what it is.
#[derive(Debug, Default)]
pub(in crate::planner) struct Groups {
    /// Per offer, in the order of opening.
    of: Vec<Vec<Group>>,
    /// Nodes so far.
    nodes: usize,
}

impl Groups {
    /// None yet, of so many offers.
    pub fn new(offers: usize) -> Self {
        Self {
            of: vec![Vec::new(); offers],
            nodes: 0,
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.nodes == 0
    }

    /// Those of one offer, in the order of opening.
    pub fn of(&self, offer: usize) -> &[Group] {
        &self.of[offer]
    }

    /// By offer.
    pub fn all(&self) -> impl Iterator<Item = &Group> {
        self.of.iter().flatten()
    }

    /// Those of some offers, in the order of opening.
    pub fn in_order<'g>(&'g self, offers: impl Iterator<Item = &'g usize>) -> Vec<&'g Group> {
        let mut groups: Vec<&Group> = offers.flat_map(|o| &self.of[*o]).collect();
        groups.sort_by_key(|g| g.leaf);
        groups
    }

    /// The one of an offer whose first node stands there.
    pub fn at(&self, offer: usize, leaf: usize) -> Option<&Group> {
        let own = &self.of[offer];
        let at = own.binary_search_by_key(&leaf, |g| g.leaf);
        at.ok().map(|at| &own[at])
    }

    /// What an attempt made of all groups of its offers, and what it opened: each in its place, maybe in parts.
    pub fn replace(&mut self, mut groups: Vec<Group>) {
        groups.sort_by_key(|g| g.leaf);
        for group in &groups {
            self.of[group.offer].clear();
        }
        // Of the group before: whose part it was, and where it ends.
        let mut before: Option<(usize, usize)> = None;
        for mut group in groups {
            let nodes = group.nodes as usize;
            group.leaf = match group.origin {
                Some(origin) => match before {
                    Some((other, end)) if other == origin => end,
                    _ => origin,
                },
                None => self.nodes,
            };
            before = group.origin.map(|origin| (origin, group.leaf + nodes));
            self.nodes = self.nodes.max(group.leaf + nodes);
            self.of[group.offer].push(group);
        }
    }
}
