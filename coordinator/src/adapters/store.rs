//! Engines behind [`crate::ports::store::Store`]: `sqlite` for production, `memory` for the simulator and tests. Both
//! pass the same table of tests; what is durable, and why, is listed at the head of `records`.

pub mod memory;
pub mod sqlite;
#[cfg(test)]
mod table;

use crate::ports::store::{COMMIT_OPS, CommitError, Guard, Op, VALUE_BYTES};

/// Longest key, bytes.
const KEY_BYTES: usize = 1_024;

/// The limits of the port, the same for every engine.
fn check_limits(guards: &[Guard], ops: &[Op]) -> Result<(), CommitError> {
    if ops.len() > COMMIT_OPS || guards.len() > COMMIT_OPS {
        return Err(CommitError::TooLarge(format!(
            "a commit of {} operations and {} guards; at most {COMMIT_OPS} of each",
            ops.len(),
            guards.len()
        )));
    }
    for op in ops {
        let (key, size) = match op {
            Op::Put(key, value) => (key, value.len()),
            Op::Delete(key) => (key, 0),
        };
        if key.is_empty() || key.len() > KEY_BYTES {
            return Err(CommitError::TooLarge(format!(
                "a key of {} bytes; 1 to {KEY_BYTES} are possible",
                key.len()
            )));
        }
        if size > VALUE_BYTES {
            return Err(CommitError::TooLarge(format!(
                "{key} would have {size} bytes; at most {VALUE_BYTES} are possible"
            )));
        }
    }
    Ok(())
}

/// A random store id: 16 hex digits.
fn new_store_id() -> String {
    hex::encode(rand::random::<[u8; 8]>())
}
