//! Reads a group's XML as moto gives it: the few figures that the proxy decides by.
//!
//! Used by the actions. It must not change anything.

use super::upstream::Upstream;
use super::xml::Element;

/// A group as moto has it.
#[derive(Clone, Debug)]
pub(super) struct GroupView {
    pub(super) xml: Element,
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) zones: Vec<String>,
    /// Instances that are in moto's group now.
    pub(super) ids: Vec<String>,
    pub(super) suspended: Vec<String>,
    pub(super) instance_type: String,
    pub(super) mixes_markets: bool,
}

impl GroupView {
    /// Asks moto; `None` when there is no such group.
    pub(super) async fn read(
        upstream: &Upstream,
        region: &str,
        name: &str,
    ) -> Result<Option<Self>, String> {
        let params = [("AutoScalingGroupNames.member.1", name)];
        let reply = upstream
            .autoscaling(region, "DescribeAutoScalingGroups", &params)
            .await?;
        let member = reply
            .child("DescribeAutoScalingGroupsResult")
            .and_then(|r| r.child("AutoScalingGroups"))
            .and_then(|g| g.child("member"))
            .cloned();
        let Some(xml) = member else {
            return Ok(None);
        };
        let instance_type = template_type(upstream, region, &xml).await?;
        Ok(Some(Self::of(xml, instance_type)))
    }

    fn of(xml: Element, instance_type: String) -> Self {
        let number = |name: &str| xml.text_of(name).parse().unwrap_or(0);
        let members = |name: &str| {
            xml.child(name)
                .map(|c| c.children.clone())
                .unwrap_or_default()
        };
        let spread = xml
            .child("MixedInstancesPolicy")
            .and_then(|p| p.child("InstancesDistribution"));
        let share: u32 = spread
            .map(|s| {
                s.text_of("OnDemandPercentageAboveBaseCapacity")
                    .parse()
                    .unwrap_or(100)
            })
            .unwrap_or(100);
        let base: u32 = spread
            .map(|s| s.text_of("OnDemandBaseCapacity").parse().unwrap_or(0))
            .unwrap_or(0);
        Self {
            min: number("MinSize"),
            max: number("MaxSize"),
            zones: members("AvailabilityZones")
                .into_iter()
                .map(|z| z.text)
                .collect(),
            ids: members("Instances")
                .iter()
                .map(|m| m.text_of("InstanceId").to_owned())
                .collect(),
            suspended: members("SuspendedProcesses")
                .iter()
                .map(|p| p.text_of("ProcessName").to_owned())
                .collect(),
            mixes_markets: (1..100).contains(&share) || (share == 0 && base > 0),
            instance_type,
            xml,
        }
    }

    /// How many instances moto has in the group.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.ids.len()).unwrap_or(u32::MAX)
    }

    /// Whether a process is suspended.
    pub(super) fn is_suspended(&self, process: &str) -> bool {
        self.suspended.iter().any(|p| p == process)
    }
}

/// The type that the group launches: the policy's first override, else the template's.
async fn template_type(upstream: &Upstream, region: &str, xml: &Element) -> Result<String, String> {
    let policy = xml
        .child("MixedInstancesPolicy")
        .and_then(|p| p.child("LaunchTemplate"));
    if let Some(first) = policy
        .and_then(|p| p.child("Overrides"))
        .and_then(|o| o.children.first())
    {
        return Ok(first.text_of("InstanceType").to_owned());
    }
    let spec = policy
        .and_then(|p| p.child("LaunchTemplateSpecification"))
        .or_else(|| xml.child("LaunchTemplate"));
    let Some(spec) = spec else {
        return Ok(String::new());
    };
    let version = match spec.text_of("Version") {
        "" => "$Default",
        other => other,
    };
    let params = [
        ("LaunchTemplateId", spec.text_of("LaunchTemplateId")),
        ("LaunchTemplateVersion.1", version),
    ];
    let reply = upstream
        .call(
            region,
            "ec2",
            "2016-11-15",
            "DescribeLaunchTemplateVersions",
            &params,
        )
        .await?;
    Ok(reply
        .child("launchTemplateVersionSet")
        .and_then(|s| s.children.first())
        .and_then(|v| v.child("launchTemplateData"))
        .map(|d| d.text_of("instanceType").to_owned())
        .unwrap_or_default())
}
