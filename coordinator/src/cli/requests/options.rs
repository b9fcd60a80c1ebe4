//! The coordinator names fields of the wire when it refuses a request; people know options. Used by `requests`; pure.

use tonic::Status;

/// Fields of a request, and the options that fill them.
const OPTIONS: [(&str, &str); 24] = [
    ("by_ms", "--by"),
    ("deadline_in_ms", "--deadline"),
    ("deadline_unix_ms", "--deadline"),
    ("duration_ms", "--for"),
    ("gpu_milli_per_unit", "--gpu-milli"),
    ("gpu_model", "--gpu-model"),
    ("gpus_per_unit", "--gpus-per-unit"),
    ("hold_ms", "--hold"),
    ("label_rules", "--label"),
    ("labels", "--label"),
    ("locality", "--locality"),
    ("max_wait_ms", "--max-wait"),
    ("memory_bytes_per_unit", "--memory-per-unit"),
    ("milli_cpus_per_unit", "--cpus-per-unit"),
    ("min_units", "--min"),
    ("name", "--name"),
    ("pools", "--pool"),
    ("preferred", "--preferred-label"),
    ("priority", "--priority"),
    ("spread", "--spread"),
    ("team", "--team"),
    ("tolerations", "--toleration"),
    ("units", "--units"),
    ("whole_nodes", "--nodes"),
];

/// The same refusal in words of the command line: the field that it begins with, and any other that only the wire has.
pub fn in_options(status: Status) -> Status {
    let text = status.message();
    let told = match text.split_once(": ") {
        Some((field, why)) => match option(field) {
            Some(option) => format!("{option}: {}", of_wire(why)),
            None => of_wire(text),
        },
        None => of_wire(text),
    };
    Status::new(status.code(), told)
}

fn option(field: &str) -> Option<&'static str> {
    let found = OPTIONS.iter().find(|(name, _)| *name == field);
    found.map(|(_, option)| *option)
}

/// Words that only the wire has are those with an underscore.
fn of_wire(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut told = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        told.push_str(option(word).filter(|_| word.contains('_')).unwrap_or(word));
        let next = after.find(is_word).unwrap_or(after.len());
        told.push_str(&after[..next]);
        rest = &after[next..];
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_option() {
        for (text, told) in [
            ("by_ms: must be more than 0", "--by: must be more than 0"),
            (
                "max_wait_ms: is longer than the time until deadline_unix_ms",
                "--max-wait: is longer than the time until --deadline",
            ),
            (
                "pools: no pool is named \"a_b\"",
                "--pool: no pool is named \"a_b\"",
            ),
            ("request try has ended", "request try has ended"),
        ] {
            let status = in_options(Status::invalid_argument(text));
            assert_eq!(status.message(), told);
        }
    }
}
