//! What the probe's supervisor shows to the collector. Plain values.

use std::fmt;
use std::sync::Arc;

use super::op::function;
use super::protocol::{InitFailure, Reading, Ready};

/// The probe as it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// Whether there is a child, and why not.
    pub status: Status,
    /// Set while a child with a working NVML runs.
    pub ready: Option<Ready>,
    /// The last complete round of the running child.
    pub reading: Option<Arc<Reading>>,
    /// What is wrong; stays until a round succeeds.
    pub trouble: Option<Trouble>,
}

/// Whether there is a child.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Status {
    /// Not tried yet, or no answer yet.
    #[default]
    Starting,
    /// It answers.
    Running,
    /// It ended; another one is started later.
    Waiting,
    /// It hangs in the driver and cannot be killed; there will be no other before it is gone.
    Unkillable,
    /// Let go on request.
    Released,
}

/// What is wrong with the probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// A driver call does not return.
    Hung {
        /// The call.
        op: String,
        /// Index of the GPU.
        gpu: Option<u32>,
    },
    /// The child died.
    Crashed {
        /// In or after this call.
        op: String,
        /// Signal or exit status, and what it printed.
        how: String,
    },
    /// NVML cannot be used.
    Init(InitFailure),
    /// The child cannot be started, or speaks nonsense.
    Broken(String),
}

/// In words, for logs; conditions have their own.
impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hung { op, gpu: None } => write!(f, "hung in {}", function(op)),
            Self::Hung { op, gpu: Some(gpu) } => {
                write!(f, "hung in {} of GPU {gpu}", function(op))
            }
            Self::Crashed { op, how } => write!(f, "died in {}: {how}", function(op)),
            Self::Init(failure) => write!(f, "NVML cannot be used: {}", failure.message),
            Self::Broken(error) => f.write_str(error),
        }
    }
}

impl Trouble {
    /// A hang or crash; another one of them within an episode does not replace the first.
    #[must_use]
    pub fn is_sudden(&self) -> bool {
        matches!(self, Self::Hung { .. } | Self::Crashed { .. })
    }
}
