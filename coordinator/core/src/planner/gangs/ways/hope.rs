//! What a gang that cannot be whole now can hope for: the place that has most for it already. Called by `hold` and
//! `elsewhere`; packs nothing.

use super::Ways;
use crate::planner::gangs::domain::Domain;
use crate::planner::gangs::look::Span;

impl Ways<'_, '_, '_> {
    /// Of the domains that `may` allows the one whose existing and coming nodes give most, and those nodes.
    pub fn hope(&self, may: impl Fn(&Domain) -> bool) -> Option<(Domain, Vec<(usize, u32)>)> {
        let most = u64::from(self.ask.want);
        let mut best: Option<(u64, &Span)> = None;
        // Of equal ones the first.
        for span in self.look.spans.iter().filter(|span| span.units > 0) {
            let units = span.units.min(most);
            if best.is_none_or(|(have, _)| have < units)
                && self.welcome(span.domain)
                && may(&self.map.domains[span.domain])
            {
                best = Some((units, span));
            }
        }
        best.map(|(_, span)| {
            let domain = self.map.domains[span.domain].clone();
            (domain, self.look.take(span, self.ask.want))
        })
    }
}
