//! The admin service: people's wishes to `control::commands` and the desks, the fleet's view to the wire. Made by `app`,
//! served by [`super::run`] behind the gate of `serve/auth`, which has checked the role of every call.
//! **Invariant:** decides nothing; everything that changes something is audited under the caller's name.

mod calls;
mod desk;
mod events;
mod groups;
mod nodes;
mod pools;
mod refusal;
mod requests;
mod shown;
mod why;

use super::auth::Caller;
use super::identities::IdentityDesk;
use super::tokens::TokenDesk;
use crate::control::commands::Commands;
use crate::ports::calls::CallCounts;
use crate::ports::clock::Clock;
use crate::ports::survey::GroupSurvey;
use drover_core::model::Millis;
use drover_proto::v1::admin_service_server::AdminServiceServer;
use drover_proto::{limits, v1};
use futures::stream::BoxStream;
use std::path::PathBuf;
use std::sync::Arc;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

/// Lines of a list without a limit.
const LINES: usize = 200;
/// Most lines of a list.
const LINES_MOST: usize = 100_000;

/// The service.
pub struct Admin {
    commands: Commands,
    tokens: TokenDesk,
    identities: IdentityDesk,
    state_dir: PathBuf,
    clock: Arc<dyn Clock>,
    calls: Option<Arc<dyn CallCounts>>,
    survey: Option<Arc<dyn GroupSurvey>>,
}

impl Admin {
    /// Over these parts; `state_dir` holds the CA key, for backups.
    #[must_use]
    pub fn new(
        commands: Commands,
        tokens: TokenDesk,
        identities: IdentityDesk,
        state_dir: PathBuf,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            commands,
            tokens,
            identities,
            state_dir,
            clock,
            calls: None,
            survey: None,
        }
    }

    /// Tells what is asked of a cloud's API as well.
    #[must_use]
    pub fn with_calls(mut self, calls: Arc<dyn CallCounts>) -> Self {
        self.calls = Some(calls);
        self
    }

    /// The same with an AWS that can be asked about groups.
    #[must_use]
    pub fn with_survey(mut self, survey: Option<Arc<dyn GroupSurvey>>) -> Self {
        self.survey = survey;
        self
    }

    /// For [`super::run`].
    #[must_use]
    pub fn routes(self) -> Routes {
        let service = AdminServiceServer::new(self)
            .max_decoding_message_size(limits::MESSAGE_BYTES)
            .max_encoding_message_size(limits::ADMIN_REPLY_BYTES);
        Routes::new(service)
    }
}

type Answer<T> = Result<Response<T>, Status>;
type BackupStream = BoxStream<'static, Result<v1::BackupChunk, Status>>;

/// Who asks, as audit lines name it, and what.
fn asked<T>(request: Request<T>) -> Result<(String, T), Status> {
    let by = Caller::of(request.extensions())?.actor();
    Ok((by, request.into_inner()))
}

fn lines(limit: u32) -> usize {
    match usize::try_from(limit) {
        Ok(0) => LINES,
        Ok(limit) => limit.min(LINES_MOST),
        Err(_) => LINES_MOST,
    }
}

fn span(ms: u64) -> Option<Millis> {
    Some(Millis(ms)).filter(|span| *span != Millis::ZERO)
}

fn given(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty())
}
