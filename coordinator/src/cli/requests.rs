//! `drover requests`: create, list, show, extend, cancel, wait. Called by `cli`; talks proto only.

pub mod amount;
mod options;
pub mod place;
mod selector;
pub mod view;
pub mod wait;

use super::connect;
use super::exit::CliError;
use super::output::{Out, say};
use super::{Globals, duration};
use amount::Create;
use clap::Subcommand;
use drover_proto::v1;
use view::RequestView;

/// What can be done with capacity requests.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Ask for capacity, like `--gpus 60 --gpu-model titan-x --for 8h --gang --min 60 --locality site`.
    Create(Box<Create>),
    /// Requests that wait or are served.
    List {
        /// Also those that ended or were cancelled.
        #[arg(long)]
        all: bool,
    },
    /// One request, with the hosts assigned to it.
    Show {
        /// Its name.
        name: String,
    },
    /// Hold it longer.
    Extend {
        /// Its name.
        name: String,
        /// Added to its end.
        #[arg(long = "by", value_name = "DURATION", value_parser = duration::parse_ms_positive)]
        by_ms: u64,
    },
    /// Give its capacity back; what runs there is not ended.
    Cancel {
        /// Its name.
        name: String,
    },
    /// Wait until all its nodes are ready (exit 0) or it cannot be (exit 1, with the reason).
    Wait {
        /// Its name.
        name: String,
    },
}

/// Runs one verb.
///
/// # Errors
/// What the coordinator refused, or that none answers.
pub async fn run(globals: &Globals, out: Out, verb: Verb) -> Result<(), CliError> {
    // Before anything is dialled: the command line must make sense.
    let spec = match &verb {
        Verb::Create(create) => Some(create.spec().map_err(CliError::Usage)?),
        _ => None,
    };
    // `--timeout` of wait is about the whole wait, not about each answer.
    let waits = matches!(verb, Verb::Wait { .. });
    let answer = Globals {
        timeout_ms: globals.timeout_ms.filter(|_| !waits),
        ..globals.clone()
    };
    let mut admin = connect::admin(&answer).await?;
    let request = match verb {
        Verb::Create(create) => {
            let ask = admin.ask(v1::CreateRequestRequest { spec });
            let request = admin.client.create_request(ask).await;
            let request = request.map_err(options::in_options)?.into_inner();
            if create.wait {
                let name = request.spec.unwrap_or_default().name;
                say(&format!("request {name} created"));
                return wait::run(admin, out, &name, globals.timeout_ms).await;
            }
            request
        }
        Verb::List { all } => {
            let ask = admin.ask(v1::ListRequestsRequest { all });
            let requests = admin.client.list_requests(ask).await?.into_inner().requests;
            let requests: Vec<RequestView> = requests.into_iter().map(Into::into).collect();
            return out.list(&requests);
        }
        Verb::Show { name } => {
            let ask = admin.ask(v1::GetRequestRequest { name });
            let request: RequestView = admin.client.get_request(ask).await?.into_inner().into();
            return out.one(&request);
        }
        Verb::Extend { name, by_ms } => {
            let ask = admin.ask(v1::ExtendRequestRequest { name, by_ms });
            let request = admin.client.extend_request(ask).await;
            request.map_err(options::in_options)?.into_inner()
        }
        Verb::Cancel { name } => {
            let ask = admin.ask(v1::CancelRequestRequest { name });
            admin.client.cancel_request(ask).await?.into_inner()
        }
        Verb::Wait { name } => return wait::run(admin, out, &name, globals.timeout_ms).await,
    };
    out.changed(&RequestView::from(request))
}
