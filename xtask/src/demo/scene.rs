//! The texts of the demo's configs and scripts: a rack, a cloud of three regions, a coordinator over both. Pure but
//! for this machine's name.

use super::Programs;
use std::fs;
use std::path::Path;

/// Hosts of the rack and GPUs of each.
pub const RACK: (u32, u32) = (15, 4);
/// GPUs of one cloud instance.
pub const INSTANCE_GPUS: u32 = 16;
/// Cloud pools: name, region, USD per hour of a p2.16xlarge, instances that the region really has.
pub const CLOUD: [(&str, &str, &str, u32); 3] = [
    ("p2-usw2", "us-west-2", "14400000", 50),
    ("p2-use1", "us-east-1", "14400000", 30),
    ("p2-euw1", "eu-west-1", "15552000", 60),
];

/// Where everything is.
#[derive(Clone, Copy)]
pub struct Scene<'s> {
    /// What is played with.
    pub programs: &'s Programs,
    /// Folder of it all.
    pub dir: &'s Path,
    /// The CLI's config folder.
    pub contexts: &'s Path,
    /// Where plans are kept.
    pub plans: &'s Path,
    /// Seed of the cloud.
    pub seed: u64,
    /// Port.
    pub coordinator: u16,
    /// Port.
    pub cloud: u16,
    /// Port of the instances' metadata.
    pub metadata: u16,
}

impl Scene<'_> {
    /// The coordinator's.
    pub fn coordinator_config(&self) -> String {
        let Self {
            coordinator, cloud, ..
        } = *self;
        let hosts: Vec<String> = (0..RACK.0)
            .map(|host| format!("\"{}\"", rack_name(host)))
            .collect();
        let mut text = format!(
            r#"[server]
listen = "127.0.0.1:{coordinator}"
names = ["localhost"]
state_dir = "{dir}/state"
context_dir = "{contexts}"

[control]
interval = "1s"
settle = "3s"
silence = "20s"
report_interval = "2s"
full_interval = "30s"
# The compiled ceiling: what goes beyond it waits for the operator.
breaker_fleet_percent = 50
breaker_pool = 100
plans_dir = "{plans}"

[[pool]]
name = "rack"
kind = "static"
site = "office"
mode = "full"
hosts = [{hosts}]
gpus = {gpus}
gpu_model = "titan-x"
cpus = 12
memory = "64GiB"

[sim]
cloud = "http://127.0.0.1:{cloud}"
"#,
            dir = self.dir.display(),
            contexts = self.contexts.display(),
            plans = self.plans.display(),
            hosts = hosts.join(", "),
            gpus = RACK.1,
        );
        for (name, region) in CLOUD
            .iter()
            .map(|c| (c.0, c.1))
            .chain([("c4-usw2", "us-west-2")])
        {
            text += &format!(
                r#"
[[pool]]
name = "{name}"
kind = "sim"
site = "{region}"
group = "{name}"
mode = "full"
max = 100
idle_after = "3s"
provision_deadline = "60s"
removal_quota = "100%"
"#
            );
        }
        text
    }

    /// The cloud's: what each instance is started as.
    pub fn cloud_config(&self) -> String {
        let Self {
            programs,
            seed,
            coordinator,
            cloud,
            metadata,
            ..
        } = *self;
        let agent = agent_config(
            coordinator,
            "{var.token_file}",
            "{dir}",
            "{metadata}",
            programs,
        );
        let nvml = r#"{"gpus": [{"profile": "{var.profile}", "count": {gpus}}], "processes_dir": "{dir}/jobs"}"#;
        let mut text = format!(
            r#"listen = "127.0.0.1:{cloud}"
metadata = "127.0.0.1:{metadata}"
seed = {seed}
work_dir = "{dir}/cloud"

[instance]
command = ["{agent_program}", "run", "--config", "{{dir}}/agent.toml"]
env = {{ DROVER_NVML_STUB = "{{dir}}/nvml.json" }}

[instance.files]
"agent.toml" = '''
hostname = "{{id}}"
{agent}'''
"nvml.json" = '''{nvml}'''
"#,
            dir = self.dir.display(),
            agent_program = programs.agent.display(),
        );
        let group = |name: &str, region: &str, offering: &str| {
            format!(
                r#"
[[group]]
name = "{name}"
region = "{region}"
max = 100
vars = {{ token_file = "{dir}/tokens/{name}", profile = "k80" }}
[[group.offering]]
zone = "{region}a"
boot_ms = 1500
boot_jitter_ms = 1500
{offering}
"#,
                dir = self.dir.display(),
            )
        };
        for (name, region, price, capacity) in CLOUD {
            let offering = format!(
                "instance_type = \"p2.16xlarge\"\nprice_micro_usd_per_hour = {price}\ngpus = {INSTANCE_GPUS}\n\
                 gpu_model = \"k80\"\ncpus = 64\nmemory_gib = 732\ncapacity = {capacity}"
            );
            text += &group(name, region, &offering);
        }
        let cpu = "instance_type = \"c4.8xlarge\"\nprice_micro_usd_per_hour = 1591000\ncpus = 36\nmemory_gib = 60";
        text + &group("c4-usw2", "us-west-2", cpu)
    }
}

/// The first host is this machine under its own name.
pub fn rack_name(host: u32) -> String {
    if host == 0 {
        let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        if !name.trim().is_empty() {
            return name.trim().to_owned();
        }
    }
    format!("titan-{:02}", host + 1)
}

/// Script of the stub NVML of one host.
pub fn nvml_script(profile: &str, gpus: u32, dir: &Path) -> String {
    format!(
        r#"{{"gpus": [{{"profile": "{profile}", "count": {gpus}}}], "processes_dir": "{}/jobs"}}"#,
        dir.display()
    )
}

/// Config of one agent.
pub fn agent_config(
    coordinator: u16,
    token_file: &str,
    dir: &str,
    metadata: &str,
    programs: &Programs,
) -> String {
    format!(
        r#"coordinator = "https://127.0.0.1:{coordinator}"
join_token_file = "{token_file}"
state_dir = "{dir}/agent"
[gpu]
library = "{}"
[metadata]
endpoint = "{metadata}"
[hooks]
dir = "{dir}/hooks.d"
"#,
        programs.nvml.display()
    )
}
