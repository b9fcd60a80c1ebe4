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
    /// How many of them moto counts against its desired capacity.
    pub(super) active: u32,
    pub(super) suspended: Vec<String>,
    pub(super) mixes_markets: bool,
}

/// What a group launches.
#[derive(Clone, Debug)]
pub(super) struct Launchable {
    /// Its types in order of preference; at least one, perhaps of no name.
    pub(super) types: Vec<String>,
    pub(super) spot: bool,
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
        Ok(member.map(Self::of))
    }

    fn of(xml: Element) -> Self {
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
            active: u32::try_from(
                members("Instances")
                    .iter()
                    .filter(|m| m.text_of("LifecycleState") == "InService")
                    .count(),
            )
            .unwrap_or(u32::MAX),
            suspended: members("SuspendedProcesses")
                .iter()
                .map(|p| p.text_of("ProcessName").to_owned())
                .collect(),
            mixes_markets: (1..100).contains(&share) || (share == 0 && base > 0),
            xml,
        }
    }

    /// Takes a member out, as moto has done.
    pub(super) fn remove(&mut self, id: &str) {
        if self
            .member(id)
            .is_some_and(|m| m.text_of("LifecycleState") == "InService")
        {
            self.active = self.active.saturating_sub(1);
        }
        self.ids.retain(|i| i != id);
        if let Some(members) = self.xml.child_mut("Instances") {
            members.children.retain(|m| m.text_of("InstanceId") != id);
        }
    }

    /// moto's entry of a member.
    pub(super) fn member(&self, id: &str) -> Option<&Element> {
        let members = &self.xml.child("Instances")?.children;
        members.iter().find(|m| m.text_of("InstanceId") == id)
    }

    /// What the group launches now.
    pub(super) async fn launchable(
        &self,
        upstream: &Upstream,
        region: &str,
    ) -> Result<Launchable, String> {
        launchable(upstream, region, &self.xml).await
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

/// The types of the policy's overrides, else the template's; spot where the policy or the template says so.
async fn launchable(
    upstream: &Upstream,
    region: &str,
    xml: &Element,
) -> Result<Launchable, String> {
    let mixed = xml.child("MixedInstancesPolicy");
    let policy = mixed.and_then(|p| p.child("LaunchTemplate"));
    let overrides: Vec<String> = policy
        .and_then(|p| p.child("Overrides"))
        .map(|o| o.children.iter())
        .into_iter()
        .flatten()
        .map(|o| o.text_of("InstanceType").to_owned())
        .filter(|t| !t.is_empty())
        .collect();
    let all_spot = mixed
        .and_then(|p| p.child("InstancesDistribution"))
        .is_some_and(|d| d.text_of("OnDemandPercentageAboveBaseCapacity") == "0");
    if !overrides.is_empty() {
        return Ok(Launchable {
            types: overrides,
            spot: all_spot,
        });
    }
    let spec = policy
        .and_then(|p| p.child("LaunchTemplateSpecification"))
        .or_else(|| xml.child("LaunchTemplate"));
    let Some(spec) = spec else {
        return Ok(Launchable {
            types: vec![String::new()],
            spot: false,
        });
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
        .ec2(region, "DescribeLaunchTemplateVersions", &params)
        .await?;
    let data = reply
        .child("launchTemplateVersionSet")
        .and_then(|s| s.children.first())
        .and_then(|v| v.child("launchTemplateData"));
    let market = data
        .and_then(|d| d.child("instanceMarketOptions"))
        .map_or("", |m| m.text_of("marketType"));
    Ok(Launchable {
        types: vec![data.map_or(String::new(), |d| d.text_of("instanceType").to_owned())],
        spot: all_spot || market == "spot",
    })
}
