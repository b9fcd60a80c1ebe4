//! How results are written: tables like kubectl's, JSON, YAML; colour only on a terminal. Every noun implements
//! [`Tabled`] and [`Sheet`] for its views and calls [`Out`]. Data goes to stdout, talk to stderr.

mod page;
mod table;

pub use page::{Page, Sheet, page};
pub use table::{Cell, Column, Tabled, Tone, table};

use super::exit::CliError;
use serde::Serialize;
use std::io::{IsTerminal as _, Write as _};

/// Form of the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns.
    #[default]
    Table,
    /// As table, with more columns.
    Wide,
    /// JSON with stable names: a list is an array, one thing an object.
    Json,
    /// The same structure as YAML.
    Yaml,
}

/// Where results go.
#[derive(Debug, Clone, Copy)]
pub struct Out {
    /// Form.
    pub format: Format,
    /// Colour on stdout.
    pub colour: bool,
    /// Bars on stderr.
    pub progress: bool,
}

impl Out {
    /// As asked; colour and progress only on a terminal and without NO_COLOR.
    #[must_use]
    pub fn new(format: Format, no_color: bool) -> Self {
        let plain = no_color
            || std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
            || std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        Self {
            format,
            colour: !plain && std::io::stdout().is_terminal(),
            progress: !plain && std::io::stderr().is_terminal(),
        }
    }

    /// A list of things.
    ///
    /// # Errors
    /// stdout cannot be written.
    pub fn list<T: Tabled + Serialize>(&self, items: &[T]) -> Result<(), CliError> {
        let now = super::duration::now_unix_ms();
        let text = match self.format {
            Format::Table | Format::Wide if items.is_empty() => {
                say("nothing to show");
                return Ok(());
            }
            Format::Table => table(items, false, self.colour, now),
            Format::Wide => table(items, true, self.colour, now),
            Format::Json => json(&items)?,
            Format::Yaml => yaml(&items)?,
        };
        write_out(text.as_bytes())
    }

    /// One thing: a page for people, an object otherwise.
    ///
    /// # Errors
    /// stdout cannot be written.
    pub fn one<T: Sheet + Serialize>(&self, item: &T) -> Result<(), CliError> {
        let text = match self.format {
            Format::Table | Format::Wide => page(item, self.colour, super::duration::now_unix_ms()),
            Format::Json => json(item)?,
            Format::Yaml => yaml(item)?,
        };
        write_out(text.as_bytes())
    }

    /// One thing that was changed: its row for people, an object otherwise.
    ///
    /// # Errors
    /// stdout cannot be written.
    pub fn changed<T: Tabled + Serialize>(&self, item: &T) -> Result<(), CliError> {
        let text = match self.format {
            Format::Json => json(item)?,
            Format::Yaml => yaml(item)?,
            wide => table(
                std::slice::from_ref(item),
                wide == Format::Wide,
                self.colour,
                super::duration::now_unix_ms(),
            ),
        };
        write_out(text.as_bytes())
    }
}

/// Pretty JSON with a line end.
///
/// # Errors
/// A value that JSON cannot say.
pub fn json<T: Serialize>(value: &T) -> Result<String, CliError> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| CliError::Failed(format!("cannot write JSON: {error}")))
}

/// JSON on one line with a line end, for streams.
///
/// # Errors
/// A value that JSON cannot say.
pub fn json_line<T: Serialize>(value: &T) -> Result<String, CliError> {
    serde_json::to_string(value)
        .map(|text| text + "\n")
        .map_err(|error| CliError::Failed(format!("cannot write JSON: {error}")))
}

/// YAML with a line end.
///
/// # Errors
/// A value that YAML cannot say.
pub fn yaml<T: Serialize>(value: &T) -> Result<String, CliError> {
    serde_yaml_ng::to_string(value)
        .map_err(|error| CliError::Failed(format!("cannot write YAML: {error}")))
}

/// Bytes to stdout. A reader that has gone (`| head`) is no failure.
///
/// # Errors
/// stdout cannot be written.
pub fn write_out(bytes: &[u8]) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(CliError::Failed(format!("cannot write to stdout: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// A line of talk to stderr. That nobody listens is no failure.
pub fn say(text: &str) {
    let lines: Vec<String> = text.lines().map(super::exit::printable).collect();
    let _ = writeln!(std::io::stderr().lock(), "{}", lines.join("\n"));
}

/// An absent wire text (empty) as a missing value.
#[must_use]
pub fn text(value: String) -> Option<String> {
    Some(value).filter(|v| !v.is_empty())
}

/// An absent wire number (0) as a missing value.
#[must_use]
pub fn number(value: u64) -> Option<u64> {
    Some(value).filter(|v| *v != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sheep(&'static str, Option<u32>);
    impl Tabled for Sheep {
        fn columns() -> Vec<Column<Self>> {
            vec![
                Column::new("NAME", |s, _| s.0.into()),
                Column::wide("LEGS", |s, _| s.1.into()),
                Column::new("STATE", |_, _| Cell::toned("ready", Tone::Good)),
                Column::new("AGE", |_, now| {
                    super::super::duration::age(now, Some(0)).into()
                }),
            ]
        }
    }
    impl Sheet for Sheep {
        fn sheet(&self, page: &mut Page, now: u64) {
            page.line("Name", Some(self.0));
            page.line("Legs", self.1);
            page.lines("Says", &["baa".to_owned()]);
            page.table("Flock", &[Self("x", Some(3))], now);
        }
    }

    #[test]
    fn tables_align_and_missing_is_a_dash() {
        let flock = [Sheep("dolly", Some(4)), Sheep("é", None)];
        assert_eq!(
            table(&flock, true, false, 3_000),
            "NAME   LEGS  STATE  AGE\ndolly  4     ready  3s\né      -     ready  3s\n"
        );
        assert_eq!(
            table(&flock[..1], false, false, 0),
            "NAME   STATE  AGE\ndolly  ready  0s\n"
        );
    }

    #[test]
    fn control_characters_reach_no_terminal() {
        let evil = Sheep("dolly\u{1b}[2J\nready", None);
        let all = table(std::slice::from_ref(&evil), true, false, 0) + &page(&evil, false, 0);
        assert!(all.contains("dolly?[2J ready"), "{all}");
        assert!(!all.contains('\u{1b}'), "{all}");
        assert!(
            json(&evil.0)
                .expect("json")
                .contains(r"dolly\u001b[2J\nready")
        );
    }

    #[test]
    fn colour_does_not_move_columns() {
        let plain = table(&[Sheep("a", None)], false, false, 0);
        let painted = table(&[Sheep("a", None)], false, true, 0);
        assert!(painted.contains("\u{1b}[32mready\u{1b}[0m"));
        let bare = painted.replace("\u{1b}[32m", "").replace("\u{1b}[0m", "");
        assert_eq!(bare, plain);
    }

    #[test]
    fn pages_leave_missing_values_out() {
        assert_eq!(
            page(&Sheep("a", None), false, 0),
            "Name: a\n\nSays:\n  baa\n\nFlock:\n  NAME  LEGS  STATE  AGE\n  x     3     ready  0s\n"
        );
    }
}
