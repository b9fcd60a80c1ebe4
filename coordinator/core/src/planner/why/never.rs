//! Why nobody could ever serve a class: what is really missing, and not all that it asks. Used by `why`.

use super::super::could::Could;
use super::super::gangs;
use super::super::matching::{self, Place};
use super::super::state::Work;
use super::Places;
use crate::model::{Class, Reason};

/// Why nobody could ever serve it; nothing here when only a limit is in the way, which is said with its pool.
pub(super) fn never<'a>(
    work: &Work<'a>,
    places: &Places<'a>,
    class: usize,
    could: &Could,
    least: u32,
) -> Option<Reason> {
    let unit = &work.input.classes[class];
    if work.input.pools.is_empty() {
        return Some(Reason::NoPools);
    }
    match (could.best(), &unit.gang) {
        (Some((domain, most)), Some(_)) => Some(Reason::GangNever {
            min: least,
            could: most,
            place: gangs::name(work, domain),
        }),
        _ if could.fits => None,
        _ => Some(missing(unit, &all_places(work, places, unit))),
    }
}

/// A place, and whether a unit has room there when it is empty.
struct Spot<'p, 'w> {
    place: &'p Place<'w>,
    fits: bool,
}

/// All places that exist or could be asked for: those of the pools that are named, where there are such.
fn all_places<'p, 'w>(work: &'p Work<'w>, places: &Places<'w>, unit: &Class) -> Vec<Spot<'p, 'w>> {
    let offers = work.offers.iter().map(|offer| Spot {
        place: &work.kinds[offer.kind],
        fits: offer.alloc.is_none() || offer.times(unit) > 0,
    });
    let shapes = places.shapes.iter().flatten().map(|(kind, size)| Spot {
        place: &work.kinds[*kind],
        fits: unit.unit.fits(size),
    });
    let all: Vec<_> = offers.chain(shapes).collect();
    let named = &unit.constraints.pools;
    let is_named = |spot: &Spot<'_, '_>| spot.place.pool.is_some_and(|pool| named.contains(pool));
    if all.iter().any(is_named) {
        all.into_iter().filter(is_named).collect()
    } else {
        all
    }
}

/// First what no place has, whatever else it has; then a taint, where that alone keeps units away; else all that is asked,
/// which no place has together.
fn missing(unit: &Class, all: &[Spot<'_, '_>]) -> Reason {
    let wants = &unit.constraints;
    let offers_none = |wants: String| Reason::NoPoolOffers {
        unit: unit.unit.clone(),
        wants,
    };
    let large = all.iter().any(|spot| spot.fits);
    let has = |holds: &dyn Fn(&Place<'_>) -> bool| {
        let mut rooms = all.iter().filter(|spot| spot.fits || !large);
        rooms.any(|spot| holds(spot.place))
    };
    let mut asked: Vec<(String, bool)> = Vec::new();
    if !wants.gpu_model.is_empty() {
        let model = matching::normal_model(&wants.gpu_model);
        let met = has(&|place| place.model.contains(&model));
        asked.push((format!("a GPU like \"{}\"", wants.gpu_model), met));
    }
    if !wants.pools.is_empty() {
        let names: Vec<&str> = wants
            .pools
            .iter()
            .map(crate::model::PoolId::as_str)
            .collect();
        let met = has(&|place| place.pool.is_some_and(|pool| wants.pools.contains(pool)));
        asked.push((format!("pool {}", names.join(" or ")), met));
    }
    for rule in &wants.requirements {
        let met = has(&|place| rule.holds(place.label(&rule.key)));
        asked.push((matching::words(rule), met));
    }
    if !wants.any_of.is_empty() {
        let met = has(&|place| {
            let all_hold = |rules: &Vec<_>| place.all_hold(rules);
            wants.any_of.iter().any(all_hold)
        });
        asked.push((matching::words_of_any(&wants.any_of), met));
    }
    let unmet = asked.iter().filter(|(_, met)| !met);
    let unmet: Vec<&str> = unmet.map(|(words, _)| words.as_str()).collect();
    if !unmet.is_empty() || !large {
        return offers_none(unmet.join(", "));
    }
    let mut rooms = all.iter().filter(|spot| spot.fits);
    let tainted = rooms.find_map(|spot| {
        let pool = spot.place.pool?;
        let only = spot.place.allows_but_for_taints(wants);
        let what = spot.place.differs(wants).filter(|_| only)?;
        Some(Reason::PoolDiffers {
            pool: pool.clone(),
            what: what.to_string(),
        })
    });
    tainted.unwrap_or_else(|| {
        let all: Vec<String> = asked.into_iter().map(|(words, _)| words).collect();
        offers_none(all.join(", "))
    })
}
