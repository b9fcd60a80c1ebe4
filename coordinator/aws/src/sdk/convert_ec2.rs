//! Instances, instance types and launch templates: from the SDK's types to ours.
//!
//! Called by `read`. What AWS left out stays out.

use aws_sdk_ec2::types as sdk;

use super::convert::{BadField, unix_ms};
use crate::{
    Gpu, Instance, InstanceState, InstanceTypeFacts, Market, ReservationUse, TemplateFacts,
};

pub(super) fn instance(raw: sdk::Instance) -> Result<Instance, BadField> {
    let bad = |field| BadField {
        what: "an instance".to_owned(),
        field,
    };
    let id = raw
        .instance_id
        .filter(|i| !i.is_empty())
        .ok_or_else(|| bad("instanceId"))?;
    let state = raw
        .state
        .and_then(|s| s.name)
        .ok_or_else(|| bad("instanceState"))?;
    Ok(Instance {
        id: id.into(),
        instance_type: raw.instance_type.map(|t| t.as_str().to_owned()),
        state: match state {
            sdk::InstanceStateName::Pending => InstanceState::Pending,
            sdk::InstanceStateName::Running => InstanceState::Running,
            sdk::InstanceStateName::Stopping => InstanceState::Stopping,
            sdk::InstanceStateName::Stopped => InstanceState::Stopped,
            sdk::InstanceStateName::ShuttingDown => InstanceState::ShuttingDown,
            sdk::InstanceStateName::Terminated => InstanceState::Terminated,
            other => InstanceState::Other(other.as_str().to_owned()),
        },
        state_reason: raw
            .state_reason
            .map(|r| {
                [r.code, r.message]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(": ")
            })
            .filter(|r| !r.is_empty()),
        zone: raw.placement.and_then(|p| p.availability_zone),
        market: raw
            .instance_lifecycle
            .map_or(Market::OnDemand, |l| Market::parse(l.as_str())),
        launched_unix_ms: unix_ms(raw.launch_time),
        private_ip: raw.private_ip_address,
        image: raw.image_id,
        reservation: raw
            .capacity_reservation_id
            .filter(|id| !id.is_empty())
            .map(Into::into),
        tags: raw
            .tags
            .unwrap_or_default()
            .into_iter()
            .filter_map(|t| Some((t.key?, t.value.unwrap_or_default())))
            .collect(),
    })
}

pub(super) fn instance_type(raw: sdk::InstanceTypeInfo) -> Result<InstanceTypeFacts, BadField> {
    let bad = |field| BadField {
        what: "an instance type".to_owned(),
        field,
    };
    let name = raw
        .instance_type
        .ok_or_else(|| bad("instanceType"))?
        .as_str()
        .to_owned();
    let gpus = raw.gpu_info.and_then(|g| g.gpus).unwrap_or_default();
    Ok(InstanceTypeFacts {
        vcpus: raw
            .v_cpu_info
            .and_then(|c| c.default_v_cpus)
            .and_then(|n| u32::try_from(n).ok()),
        memory_mib: raw
            .memory_info
            .and_then(|m| m.size_in_mib)
            .and_then(|n| u64::try_from(n).ok()),
        gpus: gpus
            .into_iter()
            .map(|g| gpu(&name, g))
            .collect::<Result<_, _>>()?,
        local_disk_gb: raw
            .instance_storage_info
            .and_then(|d| d.total_size_in_gb)
            .and_then(|n| u64::try_from(n).ok()),
        architectures: raw
            .processor_info
            .and_then(|p| p.supported_architectures)
            .unwrap_or_default()
            .iter()
            .map(|a| a.as_str().to_owned())
            .collect(),
        bare_metal: raw.bare_metal,
        name,
    })
}

fn gpu(instance_type: &str, raw: sdk::GpuDeviceInfo) -> Result<Gpu, BadField> {
    let bad = |field| BadField {
        what: format!("the GPUs of {instance_type}"),
        field,
    };
    Ok(Gpu {
        model: raw.name.ok_or_else(|| bad("name"))?,
        maker: raw.manufacturer,
        count: raw
            .count
            .and_then(|n| u32::try_from(n).ok())
            .ok_or_else(|| bad("count"))?,
        memory_mib: raw
            .memory_info
            .and_then(|m| m.size_in_mib)
            .and_then(|n| u64::try_from(n).ok()),
    })
}

pub(super) fn template(raw: sdk::LaunchTemplateVersion) -> TemplateFacts {
    let data = raw.launch_template_data;
    let market = data
        .as_ref()
        .and_then(|d| d.instance_market_options.as_ref())
        .and_then(|m| m.market_type.as_ref());
    TemplateFacts {
        id: raw.launch_template_id,
        version: raw.version_number,
        instance_type: data
            .as_ref()
            .and_then(|d| d.instance_type.as_ref())
            .map(|t| t.as_str().to_owned()),
        image: data.as_ref().and_then(|d| d.image_id.clone()),
        market: market.map_or(Market::OnDemand, |m| Market::parse(m.as_str())),
        reservations: data
            .and_then(|d| d.capacity_reservation_specification)
            .map_or_else(ReservationUse::default, reservations),
    }
}

fn reservations(
    raw: sdk::LaunchTemplateCapacityReservationSpecificationResponse,
) -> ReservationUse {
    let target = raw.capacity_reservation_target;
    let named = target.as_ref().and_then(|t| t.capacity_reservation_id());
    match (named, raw.capacity_reservation_preference) {
        (Some(id), _) => ReservationUse::Only(id.into()),
        (None, Some(sdk::CapacityReservationPreference::Open)) | (None, None)
            if target.is_none() =>
        {
            ReservationUse::Open
        }
        _ => ReservationUse::None,
    }
}
