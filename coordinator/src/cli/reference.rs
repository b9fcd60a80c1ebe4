//! The command line as a Markdown page: `docs/cli.md` is this text, a test compares them. Called by the hidden verb
//! `drover reference`.

use super::exit;
use drover_core::rules::access::{Role, Verb};
use std::fmt::Write as _;

/// What scripts may rely on.
const OUTPUT: &str = "## Output\n\n\
`-o json` is for scripts: a list is an array, one thing an object, `events --follow` one object a line. Names are \
snake_case, stay, and end in their unit (`_ms`, `_unix_ms`, `_bytes`, `_micro_usd_per_hour`, `_permille`); every field is \
always there, and a value that is not known is `null`, never 0. `-o yaml` has the same structure. The one exception is \
`drover plan`: its JSON is the plan's file as it replays, with the planner's own names, where money (`cost`, `price`) is \
micro-USD per hour, `cpu` milli-CPU, `memory` bytes, and moments and durations are ms. All other names stand in \
`coordinator/tests/snapshots/cli__json_*.snap`, which a test holds to the binary. Tables are for people and may change.\n\n";

/// The page.
#[must_use]
pub fn markdown(root: clap::Command) -> String {
    let mut text = String::from(
        "# The drover command line\n\nWritten by `drover reference`; do not edit by hand.\n\n",
    );
    let _ = writeln!(text, "{}\n", exit::HELP);
    text.push_str(OUTPUT);
    roles(&mut text);
    let mut root = root;
    root.build();
    verb(&mut text, &root, "");
    text
}

/// Who may do what, from the table that the gate asks.
fn roles(text: &mut String) {
    text.push_str(
        "## Roles\n\nA context's certificate carries a role (`drover certificates issue --role`). Each may also do what \
         the one above it may; the coordinator refuses the rest.\n\n",
    );
    for role in Role::ALL {
        let own = Verb::ALL.into_iter().filter(|verb| verb.needs() == role);
        let says: Vec<_> = own.map(Verb::says).collect();
        let _ = writeln!(text, "- `{}`: {}.", role.as_str(), says.join("; "));
    }
    text.push('\n');
}

fn verb(text: &mut String, command: &clap::Command, above: &str) {
    let name = format!(
        "{above}{}{}",
        if above.is_empty() { "" } else { " " },
        command.get_name()
    );
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let is_root = above.is_empty();
    let nouns = command.get_subcommands().any(|c| c.get_name() != "help");
    // A verb that also has verbs below it (`simulate` and `simulate generate`) has arguments of its own.
    let own = command.get_arguments().any(|arg| {
        let common = arg.get_help_heading() == Some("Global options");
        !common && !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str())
    });
    if is_root || !nouns || own {
        let _ = writeln!(text, "## `{name}`\n");
        let about = command.get_long_about().or_else(|| command.get_about());
        if let Some(about) = about {
            let about = about.to_string();
            let end = if about.ends_with('.') { "" } else { "." };
            let _ = writeln!(text, "{about}{end}\n");
        }
        let mut any = false;
        for arg in command.get_arguments() {
            let common = arg.get_help_heading() == Some("Global options") && !is_root;
            if arg.is_hide_set() || common || ["help", "version"].contains(&arg.get_id().as_str()) {
                continue;
            }
            any = true;
            argument(text, arg);
        }
        if any {
            text.push('\n');
        }
    }
    for below in command.get_subcommands() {
        verb(text, below, &name);
    }
}

fn argument(text: &mut String, arg: &clap::Arg) {
    let takes = arg.get_action().takes_values();
    let value = arg
        .get_value_names()
        .and_then(|names| names.first())
        .map_or_else(|| arg.get_id().as_str().to_uppercase(), ToString::to_string);
    let mut shown = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (None, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => value.clone(),
    };
    if takes && !arg.is_positional() {
        shown.push_str(&format!(" {value}"));
    }
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let end = if help.ends_with(['.', ')']) { "" } else { "." };
    let _ = write!(text, "- `{shown}`: {help}{end}");
    let values: Vec<_> = arg
        .get_possible_values()
        .iter()
        .filter(|v| !v.is_hide_set())
        .map(|v| v.get_name().to_owned())
        .collect();
    if takes && !values.is_empty() {
        let _ = write!(text, " One of {}.", values.join(", "));
    }
    let default: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|v| v.to_string_lossy().into_owned())
        .filter(|v| !v.is_empty())
        .collect();
    if takes && !default.is_empty() {
        let _ = write!(text, " Default {}.", default.join(", "));
    }
    text.push('\n');
}
