//! `drover context`: list, show, use, add. Called by `cli`; connects to nothing.

use super::Globals;
use super::connect;
use super::context::{self, Profile};
use super::exit::{CliError, printable};
use super::output::{Cell, Column, Out, Page, Sheet, Tabled, Tone};
use crate::files::contexts;
use clap::Subcommand;
use serde::Serialize;
use std::path::PathBuf;

/// What can be done with contexts.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// All contexts.
    List,
    /// The context in use.
    Show,
    /// Make a context the current one.
    Use {
        /// Its name.
        name: String,
    },
    /// Add or replace a context, from files that `drover certificates issue` wrote.
    Add {
        /// Its name.
        name: String,
        /// host:port of the coordinator.
        #[arg(long)]
        address: String,
        /// The coordinator's CA certificate.
        #[arg(long, value_name = "FILE")]
        ca: PathBuf,
        /// Client certificate.
        #[arg(long, value_name = "FILE")]
        cert: PathBuf,
        /// Its key.
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
}

/// A context.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct ContextView {
    pub name: String,
    pub current: bool,
    pub address: String,
    pub ca: String,
    pub cert: String,
    pub key: String,
}

impl ContextView {
    fn new(name: String, current: bool, profile: &Profile) -> Self {
        let show = |path: &PathBuf| path.display().to_string();
        Self {
            name,
            current,
            address: profile.address.clone(),
            ca: show(&profile.ca),
            cert: show(&profile.cert),
            key: show(&profile.key),
        }
    }
}

impl Tabled for ContextView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("NAME", |c, _| (&c.name).into()),
            Column::new("CURRENT", |c, _| {
                if c.current {
                    Cell::toned("yes", Tone::Good)
                } else {
                    "no".into()
                }
            }),
            Column::new("ADDRESS", |c, _| (&c.address).into()),
            Column::wide("CA", |c, _| (&c.ca).into()),
            Column::wide("CERT", |c, _| (&c.cert).into()),
            Column::wide("KEY", |c, _| (&c.key).into()),
        ]
    }
}

impl Sheet for ContextView {
    fn sheet(&self, page: &mut Page, _now: u64) {
        page.line("Name", Some(&self.name));
        page.line("Address", Some(&self.address));
        page.line("CA", Some(&self.ca));
        page.line("Certificate", Some(&self.cert));
        page.line("Key", Some(&self.key));
    }
}

/// A context's name is part of a path and of commands.
fn plain_name(name: &str) -> Result<(), CliError> {
    let plain = name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if plain {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "{:?} is no name for a context: write letters, digits, dots, dashes and underscores, at most 63",
        printable(name)
    )))
}

/// Runs one verb.
///
/// # Errors
/// Config errors of the contexts file; usage errors of a name, an address or files that no context can have.
pub fn run(globals: &Globals, out: Out, verb: Verb) -> Result<(), CliError> {
    let dir = contexts::directory()?;
    match verb {
        Verb::List => {
            let found = contexts::load(&dir)?;
            let current = found.current;
            let all: Vec<_> = found
                .context
                .iter()
                .map(|(name, profile)| {
                    ContextView::new(name.clone(), current.as_ref() == Some(name), profile)
                })
                .collect();
            out.list(&all)
        }
        Verb::Show => {
            let (name, profile) = context::choose(&dir, globals.context.as_deref())?;
            let current = contexts::load(&dir)?.current.as_ref() == Some(&name);
            out.one(&ContextView::new(name, current, &profile))
        }
        Verb::Use { name } => {
            let (name, profile) = context::choose(&dir, Some(&name))?;
            let mut all = contexts::load(&dir)?;
            all.current = Some(name.clone());
            contexts::store(&dir, &all)?;
            out.changed(&ContextView::new(name, true, &profile))
        }
        Verb::Add {
            name,
            address,
            ca,
            cert,
            key,
        } => {
            let full = |path: PathBuf| {
                std::path::absolute(&path).map_err(|error| CliError::file("find", &path, &error))
            };
            let profile = Profile {
                address,
                ca: full(ca)?,
                cert: full(cert)?,
                key: full(key)?,
            };
            plain_name(&name)?;
            connect::check(&profile)?;
            contexts::save(&dir, &name, &profile)?;
            let current = contexts::load(&dir)?.current.as_ref() == Some(&name);
            out.changed(&ContextView::new(name, current, &profile))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_contexts_are_plain() {
        for name in ["local", "local-0a1b2c3d", "eu.west_1"] {
            assert_eq!(plain_name(name), Ok(()));
        }
        for name in ["", "a/b", "../x", ".hidden", "a b", "-x", "a\u{1b}[2J"] {
            let error = plain_name(name).expect_err(name);
            assert_eq!(error.code(), 2, "{error}");
            assert!(!error.to_string().contains('\u{1b}'), "{error}");
        }
    }
}
