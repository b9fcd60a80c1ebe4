//! `drover nodes`: list, show, cordon, uncordon, drain, cancel-drain, revoke, readmit. Called by `cli`; talks proto only.

pub mod facts;
pub mod gpus;
pub mod measures;
pub mod parts;
pub mod view;

use super::connect;
use super::exit::CliError;
use super::output::{Out, say};
use super::{Globals, duration};
use clap::{Subcommand, ValueEnum};
use drover_proto::v1;
use view::NodeView;

/// What can be done with nodes. NODE is an id, a host name or an instance id.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// All nodes.
    List {
        /// Only this pool's.
        #[arg(long)]
        pool: Option<String>,
    },
    /// One node with all that is known about it.
    Show {
        /// Id, host name or instance id.
        node: String,
    },
    /// Give it no new work; what runs goes on.
    Cordon {
        /// Id, host name or instance id.
        node: String,
        /// Why, for others.
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// Give it work again.
    Uncordon {
        /// Id, host name or instance id.
        node: String,
    },
    /// Empty it: by default waits until what runs has ended.
    Drain {
        /// Id, host name or instance id.
        node: String,
        /// How workloads are treated.
        #[arg(long, value_enum, default_value_t)]
        policy: Policy,
        /// Give up after this time and restore the state before (force: end everything by then).
        #[arg(long = "deadline", value_name = "DURATION", value_parser = duration::parse_ms_positive, required_if_eq("policy", "force"))]
        deadline_ms: Option<u64>,
        /// Between TERM and KILL (the pool's).
        #[arg(long = "grace", value_name = "DURATION", value_parser = duration::parse_ms_positive)]
        grace_ms: Option<u64>,
        /// Why, for others.
        #[arg(long, default_value = "")]
        reason: String,
        /// What follows when it is empty.
        #[arg(long, value_enum, default_value_t)]
        then: Then,
    },
    /// Take a drain back; the state before is restored.
    CancelDrain {
        /// Id, host name or instance id.
        node: String,
    },
    /// Revoke its certificates and close its session; it must enrol again.
    Revoke {
        /// Id, host name or instance id.
        node: String,
        /// Why, for others.
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// Let its instance enrol once more with a new key, within an hour: ends a quarantine or a revocation.
    ///
    /// For nodes that enrolled with an instance identity document. The certificates that it had count no more; the node
    /// stays the same one, and its agent enrols by itself. First make sure that nobody else holds the document.
    Readmit {
        /// Id, host name or instance id.
        node: String,
        /// Why, for others.
        #[arg(long, default_value = "")]
        reason: String,
    },
}

/// How a drain treats workloads.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub enum Policy {
    /// Let them end.
    #[default]
    Wait,
    /// End them with grace.
    Evict,
    /// End them within the deadline whatever they say.
    Force,
}

/// What follows a drain.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub enum Then {
    /// Stay cordoned.
    #[default]
    Cordoned,
    /// Terminate the cloud instance.
    Terminate,
    /// Power the host off.
    PowerOff,
    /// Back to work.
    Return,
}

impl Then {
    const fn wire(self) -> &'static str {
        match self {
            Self::Cordoned => "cordoned",
            Self::Terminate => "terminate",
            Self::PowerOff => "power_off",
            Self::Return => "return",
        }
    }
}

impl From<Policy> for v1::DrainPolicy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Wait => Self::Wait,
            Policy::Evict => Self::Evict,
            Policy::Force => Self::Force,
        }
    }
}

/// Runs one verb.
///
/// # Errors
/// What the coordinator refused, or that none answers.
pub async fn run(globals: &Globals, out: Out, verb: Verb) -> Result<(), CliError> {
    let mut admin = connect::admin(globals).await?;
    let changed = match verb {
        Verb::List { pool } => {
            let ask = admin.ask(v1::ListNodesRequest {
                pool: pool.unwrap_or_default(),
            });
            let nodes = admin.client.list_nodes(ask).await?.into_inner().nodes;
            let nodes: Vec<NodeView> = nodes.into_iter().map(Into::into).collect();
            return out.list(&nodes);
        }
        Verb::Show { node } => {
            let ask = admin.ask(v1::GetNodeRequest { node });
            let node: NodeView = admin.client.get_node(ask).await?.into_inner().into();
            return out.one(&node);
        }
        Verb::Cordon { node, reason } => {
            let ask = admin.ask(v1::CordonNodeRequest { node, reason });
            admin.client.cordon_node(ask).await?
        }
        Verb::Uncordon { node } => {
            let ask = admin.ask(v1::UncordonNodeRequest { node });
            admin.client.uncordon_node(ask).await?
        }
        Verb::Drain {
            node,
            policy,
            deadline_ms,
            grace_ms,
            reason,
            then,
        } => {
            let ask = admin.ask(v1::DrainNodeRequest {
                node,
                policy: v1::DrainPolicy::from(policy).into(),
                deadline_ms: deadline_ms.unwrap_or_default(),
                grace_ms: grace_ms.unwrap_or_default(),
                reason,
                then: then.wire().to_owned(),
            });
            let reply = admin.client.drain_node(ask).await?;
            let name = &reply.get_ref().name;
            say(&format!(
                "draining {name}; follow it with `drover explain {name}`"
            ));
            reply
        }
        Verb::CancelDrain { node } => {
            let ask = admin.ask(v1::CancelDrainRequest { node });
            admin.client.cancel_drain(ask).await?
        }
        Verb::Revoke { node, reason } => {
            let ask = admin.ask(v1::RevokeNodeRequest { node, reason });
            admin.client.revoke_node(ask).await?
        }
        Verb::Readmit { node, reason } => {
            let ask = admin.ask(v1::ReadmitNodeRequest { node, reason });
            admin.client.readmit_node(ask).await?
        }
    };
    out.changed(&NodeView::from(changed.into_inner()))
}
