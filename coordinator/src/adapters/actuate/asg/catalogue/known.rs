//! Instance types that are known without asking AWS: for prices, and for what a node offers while AWS does not answer.
//!
//! Called by `catalogue`. Pure.

use drover_aws::{Gpu, InstanceTypeFacts};
use drover_core::model::MicroUsd;

use super::list::LIST;

/// Name, virtual CPUs, memory in MiB, GPUs, their model, memory of each in MiB, local disks together in GB, millionths of
/// a USD per hour on demand for Linux in us-east-1.
pub(super) type Row = (
    &'static str,
    u32,
    u64,
    u32,
    &'static str,
    Option<u64>,
    Option<u64>,
    Option<u64>,
);

/// Where the prices of the list hold.
pub(in crate::adapters::actuate::asg) const PRICED_IN: &str = "us-east-1";

fn row(name: &str) -> Option<&'static Row> {
    let at = LIST.binary_search_by_key(&name, |row| row.0).ok()?;
    LIST.get(at)
}

/// What the type offers, as far as the list says.
pub(super) fn facts(name: &str) -> Option<InstanceTypeFacts> {
    let &(name, vcpus, memory_mib, gpus, model, gpu_memory_mib, local_disk_gb, _) = row(name)?;
    let gpu = Gpu {
        model: model.to_owned(),
        maker: None,
        count: gpus,
        memory_mib: gpu_memory_mib,
    };
    Some(InstanceTypeFacts {
        name: name.to_owned(),
        vcpus: Some(vcpus),
        memory_mib: Some(memory_mib),
        gpus: (gpus > 0).then_some(gpu).into_iter().collect(),
        local_disk_gb,
        architectures: Vec::new(),
        bare_metal: Some(name.ends_with(".metal") || name.contains(".metal-")),
    })
}

/// On demand in [`PRICED_IN`].
pub(super) fn price(name: &str) -> Option<MicroUsd> {
    row(name)?.7.map(MicroUsd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_found_by_name_and_says_nothing_that_it_does_not_know() {
        for row in LIST {
            let found = facts(row.0).expect(row.0);
            assert!(
                found.vcpus > Some(0) && found.memory_mib > Some(0),
                "{}",
                row.0
            );
            assert!(price(row.0) != Some(MicroUsd(0)), "{}", row.0);
        }
        let p4d = facts("p4d.24xlarge").expect("known");
        assert_eq!((p4d.vcpus, p4d.gpus[0].count), (Some(96), 8));
        assert_eq!(price("p4d.24xlarge"), Some(MicroUsd(21_957_642)));
        assert_eq!(price("p5e.48xlarge"), None, "an unknown price is not zero");
        assert_eq!(facts("c5.xlarge").map(|f| f.gpus), Some(Vec::new()));
        assert_eq!(facts("c5.metal").and_then(|f| f.bare_metal), Some(true));
        assert_eq!(facts("x9.huge"), None);
    }
}
