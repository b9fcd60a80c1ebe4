//! What the collector is told: built by the agent's `config`, or by a test.
//!
//! Plain values with defaults that fit a production host; nothing here reads a file.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Everything the collector needs to know.
#[derive(Debug, Clone)]
pub struct CollectorConfig {
    /// One observation every so often.
    pub interval: Duration,
    /// The processes of a GPU are asked for at most this often.
    pub process_interval: Duration,
    /// /proc is walked for the matchers at most this often; never without matchers.
    pub matcher_interval: Duration,
    /// Facts, the mount table and the driver's versions are read at most this often.
    pub inventory_interval: Duration,
    /// The running driver is compared with the library on disk at most this often.
    pub version_interval: Duration,
    /// A statfs that takes longer than this flags its mount as stuck.
    pub mount_deadline: Duration,
    /// Also report network mounts (each guarded).
    pub network_mounts: bool,
    /// The GPU probe.
    pub probe: ProbeConfig,
    /// Processes that count as workloads although they hold no GPU.
    pub matchers: Vec<ProcessMatcher>,
    /// EC2 instance metadata.
    pub imds: ImdsConfig,
    /// Where `gpu-release.json` is kept; `None` keeps a release only while the agent lives.
    pub state_dir: Option<PathBuf>,
    /// Roots of the host's files.
    pub paths: HostPaths,
}

impl Default for CollectorConfig {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(5),
            process_interval: Duration::from_secs(10),
            matcher_interval: Duration::from_secs(15),
            inventory_interval: Duration::from_secs(300),
            version_interval: Duration::from_secs(60),
            mount_deadline: Duration::from_millis(250),
            network_mounts: false,
            probe: ProbeConfig::default(),
            matchers: Vec::new(),
            imds: ImdsConfig::default(),
            state_dir: None,
            paths: HostPaths::default(),
        }
    }
}

/// How the probe child is run.
#[derive(Debug, Clone)]
pub struct ProbeConfig {
    /// The program that has the `gpu-probe` subcommand; default: this very binary.
    pub program: PathBuf,
    /// Variables added to the child's environment (a test's script).
    pub environment: Vec<(OsString, OsString)>,
    /// The NVML library; `None`: `libnvidia-ml.so.1` by the loader's search path.
    pub library: Option<PathBuf>,
    /// One driver call may take this long.
    pub op_deadline: Duration,
    /// nvmlInit, and making the first handle of a GPU, may take this long.
    pub init_deadline: Duration,
    /// One round over all GPUs may take this long.
    pub round_deadline: Duration,
    /// First wait before the probe is started again; doubles.
    pub retry_min: Duration,
    /// Longest such wait (AG-05: at most 60 s).
    pub retry_max: Duration,
    /// Wait between tries on a host without an NVIDIA GPU on its bus.
    pub retry_without_gpu: Duration,
    /// A lost GPU is asked again after this many rounds.
    pub lost_every_rounds: u32,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self {
            program: PathBuf::from("/proc/self/exe"),
            environment: Vec::new(),
            library: None,
            op_deadline: Duration::from_secs(5),
            init_deadline: Duration::from_secs(10),
            round_deadline: Duration::from_secs(20),
            retry_min: Duration::from_secs(1),
            retry_max: Duration::from_secs(60),
            retry_without_gpu: Duration::from_secs(300),
            lost_every_rounds: 6,
        }
    }
}

/// A rule that makes a process a workload. All parts that are given must hold; one without parts matches nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessMatcher {
    /// The executable's file name, exactly (first word of the command line, without its directory).
    pub executable: Option<String>,
    /// A part of the command line.
    pub command: Option<String>,
    /// The user's name, or the uid in digits.
    pub user: Option<String>,
}

/// Where instance metadata is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImdsConfig {
    /// Never ask.
    pub disabled: bool,
    /// `http://HOST[:PORT][/PREFIX]`. Given, or set as AWS_EC2_METADATA_SERVICE_ENDPOINT, it is asked without a look at
    /// DMI; `None` asks 169.254.169.254 on hosts whose DMI says Amazon EC2.
    pub endpoint: Option<String>,
    /// Documents in which the cloud tells what it will do are asked for every so often; `None`: only who the instance is.
    pub poll: Option<Duration>,
}

/// Roots of what is read from the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPaths {
    /// /proc
    pub proc: PathBuf,
    /// /sys
    pub sys: PathBuf,
    /// /etc
    pub etc: PathBuf,
}

impl Default for HostPaths {
    fn default() -> Self {
        Self {
            proc: PathBuf::from("/proc"),
            sys: PathBuf::from("/sys"),
            etc: PathBuf::from("/etc"),
        }
    }
}
