//! How room is taken in parts of one GPU. Used by all of the check that counts room; counts anew, in its own way.

use crate::model::Resources;

/// Takes a part of one GPU: of the smallest free part that is enough, else of a whole one. False when there is none.
pub(super) fn share(room: &mut Resources, shares: &mut Vec<u32>, milli: u32) -> bool {
    if milli == 0 {
        return true;
    }
    let enough = shares
        .iter()
        .enumerate()
        .filter(|(_, free)| **free >= milli);
    let left = match enough.min_by_key(|(_, free)| **free) {
        Some((at, _)) => shares.swap_remove(at) - milli,
        None if room.gpus > 0 && milli <= 1_000 => {
            room.gpus -= 1;
            1_000 - milli
        }
        None => return false,
    };
    if left > 0 {
        shares.push(left);
    }
    true
}

/// Room in whole GPUs, and the parts of others.
pub(super) type Room = (Resources, Vec<u32>);
