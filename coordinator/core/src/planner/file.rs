//! Plan files: the input and the plan as bytes that are the same on every machine. Used by `drover plan --save/--from`
//! and by the demo's `--save-plans`.

use crate::model::{PLAN_VERSION, PlanInput};
use serde::{Deserialize, Serialize};

/// Why a plan file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PlanFileError {
    /// Not JSON, or a field is missing, unknown or of another type; the source names field, line and column.
    #[error("plan file is not a valid input at line {line}, column {column}: {what}")]
    Format {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// Field and fault.
        what: String,
    },
    /// Written by another planner.
    #[error(
        "plan file has version {found}, this planner reads version {PLAN_VERSION}: use the drover that wrote it"
    )]
    Version {
        /// Version in the file.
        found: u64,
    },
}

/// Canonical bytes: JSON, indented, fields in the order of the types, maps in key order, a newline at the end.
///
/// Empty if a value cannot be written as JSON (no type of the model can fail).
#[must_use]
pub fn to_bytes<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Reads a plan input.
///
/// # Errors
/// When the file is of another version, or not a plan input; the text names the field.
pub fn from_input_bytes(bytes: &[u8]) -> Result<PlanInput, PlanFileError> {
    #[derive(Deserialize)]
    struct Head {
        version: Option<u64>,
    }
    let format = |e: &serde_json::Error| {
        let mut what = e.to_string();
        // The position is in fields of its own.
        if let Some(at) = what.rfind(" at line ") {
            what.truncate(at);
        }
        PlanFileError::Format {
            line: e.line(),
            column: e.column(),
            what,
        }
    };
    let head: Head = serde_json::from_slice(bytes).map_err(|e| format(&e))?;
    match head.version {
        Some(found) if found != u64::from(PLAN_VERSION) => Err(PlanFileError::Version { found }),
        _ => serde_json::from_slice(bytes).map_err(|e| format(&e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_and_bad_fields_are_named() {
        for (text, wanted) in [
            (r#"{"version": 7, "future": 1}"#, "version 7"),
            (r#"{"version": 2, "now": "noon"}"#, "noon"),
            (r#"{"version": 2, "now": 0, "colour": 1}"#, "colour"),
            (r#"{"version": 2, "now": 0}"#, "seed"),
            ("{", "line 1"),
        ] {
            let said = from_input_bytes(text.as_bytes())
                .map(|_| ())
                .unwrap_err()
                .to_string();
            assert!(said.contains(wanted), "{text}: {said}");
        }
    }
}
