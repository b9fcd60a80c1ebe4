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

/// Canonical bytes: compact JSON, one pool, node, class or action a line, fields in the order of the types, maps in key
/// order, what says nothing left out, a newline at the end.
///
/// Empty if a value cannot be written as JSON (no type of the model can fail).
#[must_use]
pub fn to_bytes<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, Lines::default());
    if value.serialize(&mut writer).is_err() {
        bytes.clear();
    }
    bytes.push(b'\n');
    bytes
}

/// Depth of lists and maps whose items stand on lines of their own.
const LINES: usize = 2;

/// JSON that a person can read line by line and a difference tool can compare: items of the outer lists on lines of
/// their own, the rest compact.
#[derive(Default)]
struct Lines {
    /// Per open list or map: does it hold anything yet, and do its items stand on lines of their own?
    open: Vec<(bool, bool)>,
}

impl Lines {
    fn begin(&mut self, list: bool) {
        let depth = self.open.len();
        self.open
            .push((false, depth < LINES || (list && depth == LINES)));
    }

    fn next<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        let Some((holds, lines)) = self.open.last_mut() else {
            return Ok(());
        };
        *holds = true;
        out.write_all(match (first, *lines) {
            (true, true) => b"\n",
            (true, false) => b"",
            (false, true) => b",\n",
            (false, false) => b",",
        })
    }

    fn end<W: ?Sized + std::io::Write>(&mut self, out: &mut W, close: u8) -> std::io::Result<()> {
        if self.open.pop() == Some((true, true)) {
            out.write_all(b"\n")?;
        }
        out.write_all(&[close])
    }
}

impl serde_json::ser::Formatter for Lines {
    fn begin_array<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        self.begin(true);
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        self.end(out, b']')
    }

    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        self.next(out, first)
    }

    fn begin_object<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        self.begin(false);
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        self.end(out, b'}')
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        self.next(out, first)
    }
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
    fn items_stand_on_lines_and_the_rest_is_compact() {
        let value = serde_json::json!({
            "a": [{"x": [1, 2], "y": {}}, {"x": []}],
            "b": {"c": [{"z": 1}, {"z": 2}], "d": 1},
            "e": [],
        });
        let wanted = r#"{
"a":[
{"x":[1,2],"y":{}},
{"x":[]}
],
"b":{
"c":[
{"z":1},
{"z":2}
],
"d":1
},
"e":[]
}
"#;
        let bytes = to_bytes(&value);
        assert_eq!(String::from_utf8(bytes.clone()).unwrap(), wanted);
        let read: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(read, value);
    }

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
