//! Capacity requests: the list, and wishes about one. Used by `serve/admin`; whether one makes sense is judged by
//! `control::commands`.

use super::refusal::{named, refuse};
use super::{Admin, Answer, span};
use crate::serve::convert::requests;
use drover_proto::v1;
use tonic::Response;

impl Admin {
    /// Requests; with `all` also those that have ended or were cancelled.
    pub(super) async fn requests_shown(&self, all: bool) -> Answer<v1::ListRequestsReply> {
        use crate::control::view::RequestShown::{Cancelled, Ended};
        let view = self.view().await?;
        let shown = view
            .requests
            .iter()
            .filter(|r| all || !matches!(r.shown, Ended | Cancelled));
        let requests = shown.map(requests::request).collect();
        Ok(Response::new(v1::ListRequestsReply { requests }))
    }

    /// Asks for capacity.
    pub(super) async fn ask_for(
        &self,
        by: String,
        wish: v1::CreateRequestRequest,
    ) -> Answer<v1::Request> {
        let spec = wish.spec.ok_or_else(|| named("spec", "is missing"))?;
        let (name, spec) =
            requests::spec_from(spec, self.clock.wall()).map_err(|bad| named(bad.0, &bad.1))?;
        let name = self
            .commands
            .create_request(&by, &name, &spec)
            .await
            .map_err(refuse)?;
        self.changed_request(name.as_str()).await
    }

    /// Lets a request last longer.
    pub(super) async fn extend(
        &self,
        by: String,
        wish: v1::ExtendRequestRequest,
    ) -> Answer<v1::Request> {
        let by_ms = span(wish.by_ms).ok_or_else(|| named("by_ms", "is 0; say by how much"))?;
        let name = self
            .commands
            .extend_request(&by, &wish.name, by_ms)
            .await
            .map_err(refuse)?;
        self.changed_request(name.as_str()).await
    }

    /// Takes a request back.
    pub(super) async fn take_back(
        &self,
        by: String,
        wish: v1::CancelRequestRequest,
    ) -> Answer<v1::Request> {
        let name = self
            .commands
            .cancel_request(&by, &wish.name)
            .await
            .map_err(refuse)?;
        self.changed_request(name.as_str()).await
    }
}
