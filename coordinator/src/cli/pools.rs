//! `drover pools`: list, show, mode, pause, resume, limits, doctor, adopt, policy. Called by `cli`; talks proto only.

pub mod adopt;
pub mod doctor;
pub mod policy;
pub mod view;

use super::Globals;
use super::connect;
use super::exit::CliError;
use super::output::Out;
use clap::{Subcommand, ValueEnum};
use drover_proto::v1;
use view::PoolView;

/// What can be done with pools.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// All pools.
    List,
    /// One pool with offerings, launches and reasons.
    Show {
        /// Name in the config.
        pool: String,
    },
    /// What Drover may change in it.
    Mode {
        /// Name in the config.
        pool: String,
        /// The new mode.
        #[arg(value_enum)]
        mode: Mode,
        /// Before the time of its adoption is over.
        #[arg(long)]
        yes: bool,
        /// Why, for others.
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// What is wrong with an Auto Scaling group, and the command that mends each. Silent where all is right.
    Doctor(doctor::Args),
    /// Take an Auto Scaling group into `observe`, and watch for a time what would be done.
    Adopt(adopt::Args),
    /// What would have been done to adopted pools, beside what happened.
    Adopted(adopt::AdoptedArgs),
    /// The least IAM policy for a mode, as JSON. Asks no coordinator.
    Policy(policy::Args),
    /// Ask for no more capacity in it and remove none.
    Pause {
        /// Name in the config.
        pool: String,
        /// Why, for others.
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// End a pause, or start again after a failure of config or permission.
    Resume {
        /// Name in the config.
        pool: String,
    },
    /// Change minimum, maximum or spare until they are reset to the config file's.
    #[command(group(clap::ArgGroup::new("change").required(true).multiple(true).args(["min", "max", "spare", "reset"])))]
    Limits {
        /// Name in the config.
        pool: String,
        /// Fewest nodes.
        #[arg(long)]
        min: Option<u32>,
        /// Most nodes.
        #[arg(long)]
        max: Option<u32>,
        /// Idle nodes to keep ready.
        #[arg(long)]
        spare: Option<u32>,
        /// Back to what the config file says.
        #[arg(long, conflicts_with_all = ["min", "max", "spare"])]
        reset: bool,
    },
}

/// What Drover may change in a pool.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Mode {
    /// Nothing: plans are made and explained.
    Observe,
    /// It may add, never remove.
    Grow,
    /// It may add and remove.
    Full,
}

impl Mode {
    const fn wire(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Grow => "grow",
            Self::Full => "full",
        }
    }
}

/// Runs one verb.
///
/// # Errors
/// What the coordinator refused, or that none answers.
pub async fn run(globals: &Globals, out: Out, verb: Verb) -> Result<(), CliError> {
    if let Verb::Limits {
        min: Some(min),
        max: Some(max),
        ..
    } = &verb
        && min > max
    {
        return Err(CliError::Usage(format!(
            "--max {max} is below --min {min}; give a maximum of at least {min}"
        )));
    }
    let verb = match verb {
        Verb::Doctor(args) => return doctor::run(globals, out, args).await,
        Verb::Adopt(args) => return adopt::run(globals, out, args).await,
        Verb::Adopted(args) => return adopt::adopted(globals, out, args).await,
        Verb::Policy(args) => return policy::run(&args),
        other => other,
    };
    let mut admin = connect::admin(globals).await?;
    let changed = match verb {
        Verb::Doctor(_) | Verb::Adopt(_) | Verb::Adopted(_) | Verb::Policy(_) => return Ok(()),
        Verb::List => {
            let ask = admin.ask(v1::ListPoolsRequest {});
            let pools = admin.client.list_pools(ask).await?.into_inner().pools;
            let pools: Vec<PoolView> = pools.into_iter().map(Into::into).collect();
            return out.list(&pools);
        }
        Verb::Show { pool } => {
            let ask = admin.ask(v1::GetPoolRequest { pool });
            let pool: PoolView = admin.client.get_pool(ask).await?.into_inner().into();
            return out.one(&pool);
        }
        Verb::Mode {
            pool,
            mode,
            yes,
            reason,
        } => {
            let mode = mode.wire().to_owned();
            let ask = admin.ask(v1::SetPoolModeRequest {
                pool,
                mode,
                reason,
                sooner: yes,
            });
            admin.client.set_pool_mode(ask).await?
        }
        Verb::Pause { pool, reason } => {
            let ask = admin.ask(v1::PausePoolRequest { pool, reason });
            admin.client.pause_pool(ask).await?
        }
        Verb::Resume { pool } => {
            let ask = admin.ask(v1::ResumePoolRequest { pool });
            admin.client.resume_pool(ask).await?
        }
        Verb::Limits {
            pool,
            min,
            max,
            spare,
            reset,
        } => {
            let ask = admin.ask(v1::SetPoolLimitsRequest {
                pool,
                min,
                max,
                spare,
                reset,
            });
            admin.client.set_pool_limits(ask).await?
        }
    };
    connect::say_note(&changed);
    out.changed(&PoolView::from(changed.into_inner()))
}
