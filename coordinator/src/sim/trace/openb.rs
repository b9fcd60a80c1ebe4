//! The pod list of Alibaba's GPU cluster of 2023: a pod is a job of one unit from its creation to its deletion.
//!
//! Called by `read`. Source: hkust-adsl/kubernetes-scheduler-simulator `data/csv/`; Weng et al., USENIX ATC'23. A pod that
//! was never scheduled (phase Pending) counts as a job like any other: the reference figures do so.

use super::cells::{Faults, Row, Table, thousandths};
use super::read::Options;
use super::{Job, MOST, MOST_MEMORY, Trace};
use drover_core::model::{Bytes, Constraints, MilliCpu, Resources};

/// Columns that tell the format and must be there.
pub(super) const NEEDED: [&str; 8] = [
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "pod_phase",
    "creation_time",
    "deletion_time",
];
pub(super) fn read(text: &str, options: &Options, faults: &mut Faults) -> Trace {
    let table = Table::read(text, faults);
    let mut trace = Trace::default();
    let columns = NEEDED.map(|name| table.needed(name, faults));
    let [
        Some(name),
        Some(cpu),
        Some(memory),
        Some(gpus),
        Some(share),
        Some(phase),
        Some(created),
        Some(deleted),
    ] = columns
    else {
        return trace;
    };
    let model = table.column("gpu_spec");
    faults.ids_in(&table, name);
    for row in table.rows(faults) {
        if faults.is_full() {
            break;
        }
        if !options.failed && row.text(phase) == "Failed" {
            trace.skip("pod failed");
            continue;
        }
        let submit = row.seconds(created, faults);
        let end = row.seconds(deleted, faults);
        if end < submit && thousandths(row.text(deleted)).is_some() {
            row.wrong(
                deleted,
                faults,
                "a time in seconds that is not before creation_time",
            );
        }
        let unit = unit(&row, [cpu, memory, gpus, share], options, faults);
        let mut job = Job::new(
            row.id(name, faults),
            submit,
            drover_core::model::Millis(end.0.saturating_sub(submit.0)),
            unit,
        );
        if let (true, Some(model)) = (options.gpu_models, model) {
            job.constraints = Constraints {
                gpu_model: row.text(model).to_owned(),
                ..Constraints::default()
            };
        }
        faults.job_at(row.line);
        trace.jobs.push(job);
    }
    trace
}

fn unit(
    row: &Row<'_>,
    [cpu, memory, gpus, share]: [usize; 4],
    options: &Options,
    faults: &mut Faults,
) -> Resources {
    let whole = |column, most: u64, what: &str, faults: &mut Faults| {
        let found: Option<u64> = row.number(column, faults, &format!("a whole number of {what}"));
        let found = found.unwrap_or_default();
        if found > most {
            let expected = format!("a whole number of {what}, at most {most}");
            row.wrong(column, faults, &expected);
        }
        found.min(most)
    };
    let most_cpu = u64::from(MOST) * 1_000;
    let cpu = whole(cpu, most_cpu, "thousandths of a CPU", faults);
    let mib = whole(memory, MOST_MEMORY.0 >> 20, "MiB", faults);
    let count = row
        .count(gpus, faults, "a whole number of GPUs")
        .unwrap_or_default();
    let milli: u32 = row
        .number(share, faults, "a whole number of thousandths of a GPU")
        .unwrap_or_default();
    // Of several GPUs each is whole; no share at all of one is the whole one.
    let part = count == 1 && (1..1_000).contains(&milli) && !options.whole_gpus;
    Resources {
        cpu: MilliCpu(if options.whole_cores {
            cpu.div_ceil(1_000).saturating_mul(1_000)
        } else {
            cpu
        }),
        memory: Bytes(if options.whole_gib {
            mib.div_ceil(1_024).saturating_mul(1 << 30)
        } else {
            mib.saturating_mul(1 << 20)
        }),
        gpus: if part { 0 } else { count },
        gpu_milli: if part { milli } else { 0 },
        ..Resources::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::read::parse;
    use super::*;
    use drover_core::model::Millis;

    const HEADER: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n";

    #[test]
    fn rounds_up_and_leaves_failed_pods_out() {
        let text = format!(
            "{HEADER}a,11400,16385,1,460,V100M16,LS,Running,0,60,0\nb,1,1,0,0,,BE,Failed,0,1,\nc,500,1024,2,1000,,BE,Pending,5,65,\n"
        );
        let trace = parse("o", &text, &Options::default()).expect("sound");
        assert_eq!(trace.skipped, [("pod failed".to_owned(), 1)]);
        let a = &trace.jobs[0];
        assert_eq!(
            (a.unit.cpu.0, a.unit.memory.0 >> 30, a.unit.gpus),
            (12_000, 17, 1)
        );
        assert_eq!(a.constraints.gpu_model, "");
        assert_eq!(
            (trace.jobs[1].submit, trace.jobs[1].duration),
            (Millis(5_000), Millis(60_000))
        );
        let exact = Options {
            whole_gpus: false,
            whole_cores: false,
            whole_gib: false,
            gpu_models: true,
            failed: true,
            ..Options::default()
        };
        let trace = parse("o", &text, &exact).expect("sound");
        let a = &trace.jobs[0];
        assert_eq!(
            (a.unit.cpu.0, a.unit.memory.0 >> 20, a.unit.gpus),
            (11_400, 16_385, 0)
        );
        assert_eq!(a.unit.gpu_milli, 460);
        assert_eq!(a.constraints.gpu_model, "V100M16");
        assert_eq!(trace.jobs.len(), 3);
    }

    #[test]
    fn a_pod_that_ends_before_it_begins_is_refused() {
        let text =
            format!("{HEADER}a,1,1,1,1000,,LS,Running,60,0,0\nb,1,1,one,1000,,LS,Running,0,0,0\n");
        let problems = parse("o", &text, &Options::default()).expect_err("wrong");
        assert_eq!(problems[0].key, "column 10 (deletion_time)");
        assert_eq!(
            (problems[1].line, problems[1].key.as_str()),
            (3, "column 4 (num_gpu)")
        );
    }
}
