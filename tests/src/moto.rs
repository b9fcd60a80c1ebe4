//! moto, the AWS whose wire format the tests speak: started once per test process, made ready with groups.
//!
//! Used by the tests that need AWS. The program is installed by `cargo xtask test`. Groups are made with plain
//! Query calls, so that nothing here needs the AWS SDK.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::aws_proxy::{note_outside_change, query_moto};
use crate::wait;

/// The release that the notes and the proxy were checked against.
const VERSION: &str = "5.2.5";
/// moto starts in 0.3 s; a build beside it makes that seconds.
const START_DEADLINE: Duration = Duration::from_secs(60);

/// A running moto server; it ends when this is dropped.
#[derive(Debug)]
pub struct Moto {
    child: Child,
    url: String,
}

/// A group to be made.
#[derive(Clone, Debug)]
pub struct NewGroup {
    /// Its name.
    pub name: String,
    /// Its zones.
    pub zones: Vec<String>,
    /// The type that its launch template names.
    pub instance_type: String,
    /// Sizes.
    pub min: u32,
    /// Sizes.
    pub max: u32,
    /// Sizes.
    pub desired: u32,
    /// Whether new members are protected from scale-in.
    pub protects_new: bool,
    /// Tags.
    pub tags: Vec<(String, String)>,
    /// For a mixed group.
    pub mixed: Option<Mixed>,
}

/// How a mixed group chooses.
#[derive(Clone, Debug)]
pub struct Mixed {
    /// Its types, in order of preference.
    pub types: Vec<String>,
    /// Share of on-demand, percent.
    pub on_demand_percent: u32,
    /// How much one of the types counts for; AWS says one when absent.
    pub weight: Option<u32>,
}

impl NewGroup {
    /// A group of one type over some zones: 0 to 20 members, none yet, new ones protected.
    pub fn new(name: &str, instance_type: &str, zones: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            zones: zones.iter().map(|z| (*z).to_owned()).collect(),
            instance_type: instance_type.to_owned(),
            min: 0,
            max: 20,
            desired: 0,
            protects_new: true,
            tags: Vec::new(),
            mixed: None,
        }
    }

    /// The same with one more tag.
    #[must_use]
    pub fn tag(mut self, key: &str, value: &str) -> Self {
        self.tags.push((key.to_owned(), value.to_owned()));
        self
    }
}

static SHARED: tokio::sync::OnceCell<Moto> = tokio::sync::OnceCell::const_new();

impl Moto {
    /// The one moto of this test process, started at first use. Tests keep apart by the names of their groups.
    ///
    /// # Panics
    /// As [`Moto::start`].
    pub async fn shared() -> &'static Self {
        SHARED.get_or_init(Self::start).await
    }

    /// Starts moto on a free port and waits until it answers.
    ///
    /// # Panics
    /// When moto is not installed (the text says how), or does not start.
    pub async fn start() -> Self {
        let program = program();
        let port = free_port();
        // The shell ends moto when its input ends, however this process ends.
        let child = Command::new("/bin/sh")
            .args([
                "-c",
                "\"$0\" -H 127.0.0.1 -p \"$1\" </dev/null & server=$!; read -r _; kill $server",
            ])
            .arg(&program)
            .arg(port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {}: {e}", program.display()));
        let moto = Self {
            child,
            url: format!("http://127.0.0.1:{port}"),
        };
        let what = format!("the answer of {}", program.display());
        wait::until_async(&what, START_DEADLINE, async || {
            moto.ec2("us-east-1", "DescribeRegions", &[]).await.ok()
        })
        .await;
        moto
    }

    /// Where it serves.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Makes a launch template of the group's name, and the group.
    ///
    /// # Panics
    /// When moto refuses.
    pub async fn create_group(&self, region: &str, group: &NewGroup) {
        let text = |n: u32| n.to_string();
        let mut template = vec![
            ("LaunchTemplateName".to_owned(), group.name.clone()),
            (
                "LaunchTemplateData.ImageId".to_owned(),
                "ami-12c6146b".to_owned(),
            ),
        ];
        if !group.instance_type.is_empty() {
            template.push((
                "LaunchTemplateData.InstanceType".to_owned(),
                group.instance_type.clone(),
            ));
        }
        self.ec2(region, "CreateLaunchTemplate", &template)
            .await
            .expect("a launch template");
        let mut form = vec![
            ("AutoScalingGroupName".to_owned(), group.name.clone()),
            ("MinSize".to_owned(), text(group.min)),
            ("MaxSize".to_owned(), text(group.max)),
            ("DesiredCapacity".to_owned(), text(group.desired)),
            (
                "NewInstancesProtectedFromScaleIn".to_owned(),
                group.protects_new.to_string(),
            ),
        ];
        let spec = match &group.mixed {
            None => "LaunchTemplate".to_owned(),
            Some(_) => "MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification".to_owned(),
        };
        form.push((format!("{spec}.LaunchTemplateName"), group.name.clone()));
        form.push((format!("{spec}.Version"), "$Latest".to_owned()));
        if let Some(mixed) = &group.mixed {
            for (n, instance_type) in mixed.types.iter().enumerate() {
                let row = format!(
                    "MixedInstancesPolicy.LaunchTemplate.Overrides.member.{}",
                    n + 1
                );
                form.push((format!("{row}.InstanceType"), instance_type.clone()));
                if let Some(weight) = mixed.weight {
                    form.push((format!("{row}.WeightedCapacity"), text(weight)));
                }
            }
            let share =
                "MixedInstancesPolicy.InstancesDistribution.OnDemandPercentageAboveBaseCapacity";
            form.push((share.to_owned(), text(mixed.on_demand_percent)));
        }
        for (n, zone) in group.zones.iter().enumerate() {
            form.push((format!("AvailabilityZones.member.{}", n + 1), zone.clone()));
        }
        for (n, (key, value)) in group.tags.iter().enumerate() {
            let row = format!("Tags.member.{}", n + 1);
            form.push((format!("{row}.Key"), key.clone()));
            form.push((format!("{row}.Value"), value.clone()));
            form.push((format!("{row}.ResourceId"), group.name.clone()));
            form.push((
                format!("{row}.ResourceType"),
                "auto-scaling-group".to_owned(),
            ));
            form.push((format!("{row}.PropagateAtLaunch"), "false".to_owned()));
        }
        self.autoscaling(region, "CreateAutoScalingGroup", &form)
            .await
            .expect("a group");
    }

    /// Makes a call of Auto Scaling behind the proxy's back; gives the answer's text.
    ///
    /// # Errors
    /// moto's words when it refuses.
    pub async fn autoscaling(
        &self,
        region: &str,
        action: &str,
        form: &[(String, String)],
    ) -> Result<String, String> {
        note_outside_change();
        let reply = query_moto(&self.url, region, "autoscaling", "2011-01-01", action, form).await;
        note_outside_change();
        reply
    }

    /// Makes a call of SQS behind the proxy's back; gives the answer's text.
    ///
    /// # Errors
    /// moto's words when it refuses.
    pub async fn sqs(
        &self,
        region: &str,
        action: &str,
        form: &[(String, String)],
    ) -> Result<String, String> {
        query_moto(&self.url, region, "sqs", "2012-11-05", action, form).await
    }

    /// Makes a call of EC2 behind the proxy's back; gives the answer's text.
    ///
    /// # Errors
    /// moto's words when it refuses.
    pub async fn ec2(
        &self,
        region: &str,
        action: &str,
        form: &[(String, String)],
    ) -> Result<String, String> {
        note_outside_change();
        let reply = query_moto(&self.url, region, "ec2", "2016-11-15", action, form).await;
        note_outside_change();
        reply
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("DROVER_MOTO_SERVER").filter(|p| !p.is_empty()) {
        return PathBuf::from(path);
    }
    let peers = std::env::var_os("DROVER_PEERS")
        .filter(|p| !p.is_empty())
        .map(PathBuf::from);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let peers = peers.or_else(|| Some(home?.join(".cache/drover/peers")));
    let found = peers
        .map(|p| p.join(format!("moto-{VERSION}/bin/moto_server")))
        .filter(|p| p.exists());
    found.unwrap_or_else(|| panic!("moto {VERSION} is not installed: run `cargo xtask test`, which installs it, or set DROVER_MOTO_SERVER to a moto_server"))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its number").port()
}
