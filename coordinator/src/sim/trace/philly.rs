//! Microsoft's Philly (2017), as `job,submit_s,num_gpus,duration_s`: under the GPUs of a node on one node, from there on
//! whole nodes plus the rest.
//!
//! Called by `read`. Source: msr-fiddle/philly-traces; Jeon et al., USENIX ATC'19.

use super::cells::{Faults, Table};
use super::read::Options;
use super::{Job, Trace};
use drover_core::model::{Millis, Resources};

/// The header.
pub(super) const HEADER: [&str; 4] = ["job", "submit_s", "num_gpus", "duration_s"];

pub(super) fn read(text: &str, options: &Options, faults: &mut Faults) -> Trace {
    let table = Table::read(text, faults);
    let mut trace = Trace::default();
    let columns = HEADER.map(|name| table.needed(name, faults));
    let [Some(id), Some(submit), Some(gpus), Some(duration)] = columns else {
        return trace;
    };
    faults.ids_in(&table, id);
    for row in table.rows(faults) {
        if faults.is_full() {
            break;
        }
        let some = "a whole number of GPUs, at least 1";
        let count = row.count(gpus, faults, some);
        if count == Some(0) {
            row.wrong(gpus, faults, some);
        }
        let submit = row.seconds(submit, faults);
        let duration = row.seconds(duration, faults);
        faults.job_at(row.line);
        trace.jobs.push(job(
            row.id(id, faults),
            submit,
            duration,
            count.unwrap_or_default(),
            options.gpus_per_node.max(1),
        ));
    }
    trace
}

fn gpus(count: u32) -> Resources {
    Resources {
        gpus: count,
        ..Resources::default()
    }
}

fn job(id: String, submit: Millis, duration: Millis, count: u32, per_node: u32) -> Job {
    if count < per_node {
        return Job::new(id, submit, duration, gpus(count));
    }
    let rest = count % per_node;
    Job {
        units: count / per_node,
        min_units: count / per_node,
        whole_node: true,
        rest: (rest > 0).then(|| gpus(rest)),
        ..Job::new(id, submit, duration, gpus(per_node))
    }
}

#[cfg(test)]
mod tests {
    use super::super::read::parse;
    use super::*;

    #[test]
    fn from_a_nodes_gpus_on_whole_nodes_and_the_rest() {
        let text = "job,submit_s,num_gpus,duration_s\na,0,7,60\nb,1,8,60\nc,2,20,1.5\n";
        let trace = parse("p", text, &Options::default()).expect("sound");
        let found: Vec<_> = trace
            .jobs
            .iter()
            .map(|j| {
                (
                    j.unit.gpus,
                    j.units,
                    j.whole_node,
                    j.rest.as_ref().map(|r| r.gpus),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                (7, 1, false, None),
                (8, 1, true, None),
                (8, 2, true, Some(4))
            ]
        );
        assert_eq!(trace.jobs[2].duration, Millis(1_500));
    }

    #[test]
    fn line_column_and_what_was_expected() {
        let text =
            "job,submit_s,num_gpus,duration_s\na,0,x,60\nb,-1,8,60\na,2,0,3\nz,1,1\nb,1,1,1\n";
        let problems = parse("p", text, &Options::default()).expect_err("wrong");
        let found: Vec<(usize, &str)> = problems.iter().map(|p| (p.line, p.key.as_str())).collect();
        assert_eq!(
            found,
            [
                (2, "column 3 (num_gpus)"),
                (3, "column 2 (submit_s)"),
                (4, "column 3 (num_gpus)"),
                (4, "column 1 (job)"),
                (5, "column 4 (duration_s)"),
                (6, "column 1 (job)"),
            ],
            "{problems:#?}"
        );
    }
}
