//! An instance metadata service (version 2 only) per instance: `/INSTANCE/latest/...`.
//!
//! Tokens are asked for as on EC2 and checked; there is no fallback to version 1.

use super::engine::Engine;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use std::sync::Arc;

const TOKEN: &str = "x-aws-ec2-metadata-token";
const TTL: &str = "x-aws-ec2-metadata-token-ttl-seconds";

/// The routes.
pub fn router(engine: Arc<Engine>) -> Router {
    Router::new()
        .route("/{instance}/latest/api/token", put(token))
        .route("/{instance}/latest/{*path}", get(read))
        .with_state(engine)
}

async fn token(
    State(engine): State<Arc<Engine>>,
    Path(instance): Path<String>,
    headers: HeaderMap,
) -> Response {
    let seconds = headers
        .get(TTL)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.parse::<u32>().ok());
    match seconds {
        Some(seconds @ 1..=21_600) if engine.metadata(&instance).is_some() => {
            ([(TTL, seconds.to_string())], format!("token-{instance}")).into_response()
        }
        Some(1..=21_600) => StatusCode::NOT_FOUND.into_response(),
        _ => StatusCode::BAD_REQUEST.into_response(),
    }
}

async fn read(
    State(engine): State<Arc<Engine>>,
    Path((instance, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    if headers.get(TOKEN).and_then(|v| v.to_str().ok()) != Some(&format!("token-{instance}")) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let Some(facts) = engine.metadata(&instance) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match path.as_str() {
        "meta-data/instance-id" => instance.into_response(),
        "meta-data/instance-type" => facts.instance_type.into_response(),
        "meta-data/placement/availability-zone" => facts.zone.into_response(),
        "meta-data/placement/region" => facts.region.into_response(),
        "meta-data/autoscaling/target-lifecycle-state" => "InService".into_response(),
        "meta-data/events/maintenance/scheduled" => "[]".into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}
