//! `cargo xtask catalogue`: writes the compiled-in list of instance types from the facts in the CSV beside it.
//!
//! Called by people after they changed the CSV; a test compares both. It reads no network: the CSV says where each line
//! comes from.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result, bail, ensure};

use crate::workspace;

/// Where both lie, from the clone's root.
const FOLDER: &str = "coordinator/src/adapters/actuate/asg/catalogue";
const FACTS: &str = "ec2_instances.csv";
const LIST: &str = "list.rs";
const COLUMNS: &str = "instance_type,vcpu,memory_mib,gpus,gpu_model,gpu_memory_mib_each,local_nvme_gb,\
                       ondemand_usd_per_hour_us_east_1,spec_source";

/// Arguments of `cargo xtask catalogue`.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Writes the list. Always true: it changes one file and judges nothing.
pub(crate) fn run(_: &Args) -> Result<bool> {
    let folder = workspace::root().join(FOLDER);
    let list = list(&read(FACTS)?)?;
    fs::write(folder.join(LIST), list).with_context(|| format!("cannot write {FOLDER}/{LIST}"))?;
    Ok(true)
}

fn read(name: &str) -> Result<String> {
    let path = workspace::root().join(FOLDER).join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The list's text from the CSV's.
fn list(facts: &str) -> Result<String> {
    let mut lines = facts.lines();
    ensure!(
        lines.next() == Some(COLUMNS),
        "{FACTS} does not begin with the columns {COLUMNS}"
    );
    let mut rows: Vec<(String, String)> = Vec::new();
    for (at, line) in lines.enumerate() {
        let row = row(line).with_context(|| format!("{FACTS}, line {}", at + 2))?;
        rows.push(row);
    }
    rows.sort();
    if let Some(twice) = rows.windows(2).find(|two| two[0].0 == two[1].0) {
        bail!("{FACTS} names {} twice", twice[0].0);
    }
    let mut text = format!(
        "//! Instance types that are known without asking AWS. Written by `cargo xtask catalogue` from `{FACTS}`:\n\
         //! change that and run it again.\n\
         //!\n\
         //! Read by `known`.\n\n\
         use super::known::Row;\n\n\
         /// By name.\n\
         #[rustfmt::skip]\n\
         pub(super) const LIST: &[Row] = &[\n"
    );
    for (_, row) in rows {
        writeln!(text, "    {row},")?;
    }
    text.push_str("];\n");
    Ok(text)
}

/// One line as a type's name and its row in the list.
fn row(line: &str) -> Result<(String, String)> {
    let cells: Vec<&str> = line.split(',').collect();
    let [
        name,
        vcpus,
        memory,
        gpus,
        model,
        gpu_memory,
        disk,
        price,
        source,
    ] = cells[..]
    else {
        bail!(
            "{} cells instead of {}",
            cells.len(),
            COLUMNS.split(',').count()
        );
    };
    ensure!(
        name.contains('.') && !name.contains(['"', '\\']) && !model.contains(['"', '\\']),
        "{name:?} or {model:?} is odd"
    );
    ensure!(!source.is_empty(), "{name} has no source");
    let number = |what: &str, text: &str| -> Result<u64> {
        let found = text.parse();
        found.with_context(|| format!("{what} of {name} is {text:?}"))
    };
    let some = |what: &str, text: &str| -> Result<String> {
        Ok(match text {
            "" => "None".to_owned(),
            text => format!("Some({})", number(what, text)?),
        })
    };
    let gpus = number("gpus", gpus)?;
    ensure!(
        (gpus > 0) != model.is_empty(),
        "{name} has GPUs without a model, or a model without GPUs"
    );
    let price = match price {
        "" => "None".to_owned(),
        text => format!(
            "Some({})",
            micro_usd(text).with_context(|| format!("price of {name}"))?
        ),
    };
    let row = format!(
        "(\"{name}\", {}, {}, {gpus}, \"{model}\", {}, {}, {price})",
        number("vcpu", vcpus)?,
        number("memory_mib", memory)?,
        some("gpu_memory_mib_each", gpu_memory)?,
        some("local_nvme_gb", disk)?,
    );
    Ok((name.to_owned(), row))
}

/// `21.957642` as millionths; more digits are refused.
fn micro_usd(text: &str) -> Result<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    ensure!(part.len() <= 6, "{text:?} has more than six digits");
    let micro: u64 = format!("{part:0<6}").parse()?;
    let whole: u64 = whole.parse()?;
    let all = whole * 1_000_000 + micro;
    ensure!(all > 0, "{text:?} is no price");
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_what_the_facts_give() {
        let made = list(&read(FACTS).expect("the facts")).expect("sound facts");
        let kept = read(LIST).expect("the list");
        assert!(
            made == kept,
            "{FOLDER}/{LIST} is not what {FACTS} gives: run `cargo xtask catalogue`"
        );
    }

    #[test]
    fn unsound_facts_are_refused_with_their_line() {
        let with = |line: &str| format!("{COLUMNS}\n{line}\n");
        let good = "p5e.48xlarge,192,2097152,8,h200,144384,30400,,docs";
        assert!(
            list(&with(good))
                .expect("sound")
                .contains("Some(30400), None)")
        );
        for (bad, says) in [
            (
                "p5e.48xlarge,192,2097152,8,,144384,30400,,docs",
                "GPUs without a model",
            ),
            (
                "p5e.48xlarge,many,2097152,8,h200,144384,30400,,docs",
                "vcpu of p5e.48xlarge",
            ),
            (
                "p5e.48xlarge,192,2097152,8,h200,144384,30400,0,docs",
                "price of p5e.48xlarge",
            ),
            ("p5e.48xlarge,192,2097152,8,h200,144384,30400,", "8 cells"),
            (
                "p5e.48xlarge,192,2097152,8,h200,144384,30400,,",
                "no source",
            ),
            (&format!("{good}\n{good}"), "twice"),
        ] {
            let why = format!("{:#}", list(&with(bad)).expect_err(bad));
            assert!(why.contains(says), "{bad}: {why}");
        }
        assert!(list("a,b\n").is_err());
        assert_eq!(micro_usd("21.957642").expect("a price"), 21_957_642);
    }
}
