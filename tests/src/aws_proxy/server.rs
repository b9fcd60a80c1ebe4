//! The server: takes calls, lets faults strike, hands the rest to the actions or to moto.
//!
//! Started by `AwsProxy`. One lock per region, so that a slow region does not hold up the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::acts::Waiting;
use super::clock::now_unix_ms;
use super::ledger::{Ledger, Mutation};
use super::query::Query;
use super::reply::Reply;
use super::scenario::{Act, Effect, Scenario, concerns};
use super::state::RegionState;
use super::upstream::Upstream;
use super::{
    acts, advance, describe, desired, groups, hooks, iam, launch, offers, overlay, terminate, warm,
};

/// Most names of actions that are counted apart.
const MAX_ACTIONS: usize = 500;

type RegionLock = Arc<tokio::sync::Mutex<RegionState>>;

/// Everything that the proxy's calls share.
pub(super) struct Proxy {
    upstream: Upstream,
    scenario: Mutex<Scenario>,
    /// Matching calls so far, by fault.
    struck: Mutex<Vec<u32>>,
    ledger: Mutex<Ledger>,
    regions: Mutex<BTreeMap<String, RegionLock>>,
    /// When the present scenario began, milliseconds since 1970.
    began_unix_ms: AtomicU64,
    waiting: Mutex<Waiting>,
    /// The names of AWS's regions, as moto has them.
    known_regions: tokio::sync::OnceCell<BTreeSet<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An error of the proxy or of moto: a server error with a code, so that nobody takes it for something else.
pub(super) fn internal(query: &Query, text: &str) -> Reply {
    Reply::error(query, 500, "InternalFailure", text)
}

impl Proxy {
    pub(super) fn new(moto: &str, scenario: Scenario) -> Self {
        let struck = vec![0; scenario.faults.len()];
        let mut waiting = Waiting::default();
        waiting.replace(&scenario.acts);
        Self {
            upstream: Upstream::new(moto),
            scenario: Mutex::new(scenario),
            struck: Mutex::new(struck),
            ledger: Mutex::default(),
            regions: Mutex::default(),
            began_unix_ms: AtomicU64::new(now_unix_ms()),
            waiting: Mutex::new(waiting),
            known_regions: tokio::sync::OnceCell::new(),
        }
    }

    pub(super) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Not to be held across an await.
    pub(super) fn scenario(&self) -> MutexGuard<'_, Scenario> {
        lock(&self.scenario)
    }

    /// Not to be held across an await.
    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.ledger)
    }

    /// Not to be held across an await.
    pub(super) fn waiting(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.waiting)
    }

    /// The regions that something was asked of.
    pub(super) fn region_names(&self) -> Vec<String> {
        lock(&self.regions).keys().cloned().collect()
    }

    pub(super) fn began_unix_ms(&self) -> u64 {
        self.began_unix_ms.load(Ordering::Relaxed)
    }

    /// Whether AWS has a region of this name.
    pub(super) async fn knows_region(&self, name: &str) -> Result<bool, String> {
        let known = self.known_regions.get_or_try_init(async || {
            let reply = self
                .upstream
                .ec2("us-east-1", "DescribeRegions", &[])
                .await?;
            let rows = reply.child("regionInfo").map(|r| r.children.iter());
            let names = rows.into_iter().flatten();
            Ok::<_, String>(names.map(|r| r.text_of("regionName").to_owned()).collect())
        });
        Ok(known.await?.contains(name))
    }

    pub(super) fn region(&self, name: &str) -> RegionLock {
        lock(&self.regions)
            .entry(name.to_owned())
            .or_default()
            .clone()
    }

    /// Replaces the scenario and begins to count faults anew; unfilled wishes are tried at once.
    pub(super) async fn set(&self, scenario: Scenario) {
        *lock(&self.struck) = vec![0; scenario.faults.len()];
        self.waiting().replace(&scenario.acts);
        *self.scenario() = scenario;
        self.began_unix_ms.store(now_unix_ms(), Ordering::Relaxed);
        let regions: Vec<RegionLock> = lock(&self.regions).values().cloned().collect();
        for region in regions {
            for group in region.lock().await.groups.values_mut() {
                group.retry_at = group.retry_at.map(|_| std::time::Instant::now());
            }
        }
    }

    /// The effect of the first fault that is due for this call; every matching one counts it.
    fn strike(&self, query: &Query) -> Effect {
        let scenario = self.scenario();
        let mut struck = lock(&self.struck);
        let mut effect = Effect::None;
        for (fault, count) in scenario.faults.iter().zip(struck.iter_mut()) {
            let matches = concerns(fault.action.as_ref(), &query.action)
                && concerns(fault.region.as_ref(), &query.region)
                && concerns(fault.group.as_ref(), query.group());
            if !matches {
                continue;
            }
            *count += 1;
            let from = fault.from.unwrap_or(1);
            let due = *count >= from
                && fault
                    .times
                    .is_none_or(|times| *count < from.saturating_add(times));
            if due && effect == Effect::None {
                effect = fault.effect.clone();
            }
        }
        effect
    }

    fn note(&self, query: &Query) {
        let mut ledger = self.ledger();
        let known = ledger.calls.len() < MAX_ACTIONS || ledger.calls.contains_key(&query.action);
        let action = if known {
            query.action.as_str()
        } else {
            "others"
        };
        *ledger.calls.entry(action.to_owned()).or_default() += 1;
        if query.only_reads() {
            return;
        }
        let what = ["RequestedCapacity", "DesiredCapacity", "InstanceId"]
            .iter()
            .map(|k| query.get(k))
            .find(|v| !v.is_empty());
        ledger.mutation(Mutation {
            at_unix_ms: now_unix_ms(),
            region: query.region.clone(),
            action: query.action.clone(),
            group: query.group().to_owned(),
            what: what.unwrap_or_default().to_owned(),
            zone: query.list("AvailabilityZones").join(","),
            token: query.get("ClientToken").to_owned(),
        });
    }

    /// `None` ends the connection without an answer.
    async fn answer(&self, query: &Query) -> Option<Reply> {
        self.note(query);
        let effect = self.strike(query);
        match effect {
            Effect::Drop => return None,
            Effect::Html { status } => {
                let body =
                    "<!doctype html>\n<html lang=en>\n<title>500 Internal Server Error</title>\n"
                        .to_owned();
                return Some(Reply {
                    content_type: "text/html".to_owned(),
                    ..Reply::xml(status, body)
                });
            }
            Effect::Error {
                status,
                code,
                message,
            } => return Some(Reply::error(query, status, &code, &message)),
            // sleeps: the scenario asks for a slow answer
            Effect::Latency { ms } => tokio::time::sleep(Duration::from_millis(ms)).await,
            Effect::None | Effect::ReplyLost | Effect::ReplyLate { .. } => {}
        }
        let reply = self
            .act(query)
            .await
            .and_then(|reply| overlay::lay(self, query, reply))
            .unwrap_or_else(|e| internal(query, &e));
        match effect {
            Effect::ReplyLost => None,
            Effect::ReplyLate { ms } => {
                // sleeps: the scenario asks for a reply that comes late
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Some(reply)
            }
            _ => Some(reply),
        }
    }

    async fn act(&self, query: &Query) -> Result<Reply, String> {
        if let Some(refused) = offers::wrong_region(self, query).await? {
            return Ok(refused);
        }
        if let Some(refused) = iam::refuse(self, query) {
            return Ok(refused);
        }
        advance::pass(self, &query.region).await?;
        match query.action.as_str() {
            "LaunchInstances" => Ok(launch::launch_instances(self, query).await),
            "SetDesiredCapacity" => desired::set_desired(self, query).await,
            "TerminateInstanceInAutoScalingGroup" => terminate::terminate(self, query).await,
            "CreateAutoScalingGroup" | "UpdateAutoScalingGroup" => groups::put(self, query).await,
            "DeleteAutoScalingGroup" => groups::delete_call(self, query).await,
            "SuspendProcesses" | "ResumeProcesses" => groups::processes(self, query).await,
            "PutScalingPolicy" => groups::put_policy(self, query).await,
            "SetInstanceProtection" => terminate::protect(self, query).await,
            "SetInstanceHealth" => terminate::health(self, query).await,
            "TerminateInstances" => terminate::in_ec2(self, query).await,
            "PutLifecycleHook" => hooks::put(self, query).await,
            "DescribeLifecycleHooks" => hooks::describe(self, query).await,
            "RecordLifecycleActionHeartbeat" | "CompleteLifecycleAction" => {
                hooks::answer(self, query).await
            }
            "PutWarmPool" => warm::put(self, query).await,
            "DeleteWarmPool" => warm::delete(self, query).await,
            "DescribeWarmPool" => warm::describe(self, query).await,
            "DescribePolicies" => describe::policies(self, query).await,
            "DescribeAutoScalingInstances" => describe::group_instances(self, query).await,
            "DescribeAutoScalingGroups" => describe::groups(self, query).await,
            "DescribeScalingActivities" => describe::activities(self, query).await,
            "DescribeInstances" => describe::instances(self, query).await,
            "DescribeInstanceRefreshes" => offers::refreshes(self, query).await,
            "DescribeSpotPriceHistory" => Ok(offers::spot_prices(self, query)),
            "DescribeCapacityReservations" => Ok(offers::reservations(self, query)),
            "ListServiceQuotas" => Ok(offers::quotas(self, query)),
            "SimulatePrincipalPolicy" => Ok(iam::simulate(self, query)),
            "RunInstances" if query.get("DryRun") == "true" => iam::dry_run(self, query).await,
            _ => self.upstream.forward(query).await,
        }
    }

    /// The admin path.
    async fn admin(&self, method: &Method, path: &str, body: &[u8]) -> Reply {
        match (method.as_str(), path) {
            ("GET", "/__proxy/health") => Reply::json(200, "{\"ok\":true}".to_owned()),
            ("GET", "/__proxy/ledger") => {
                let text = serde_json::to_string(&*self.ledger());
                text.map_or_else(
                    |e| Reply::json(500, format!("\"{e}\"")),
                    |text| Reply::json(200, text),
                )
            }
            ("GET", "/__proxy/scenario") => {
                let text = serde_json::to_string(&*self.scenario());
                text.map_or_else(
                    |e| Reply::json(500, format!("\"{e}\"")),
                    |text| Reply::json(200, text),
                )
            }
            ("POST", "/__proxy/act") => match serde_json::from_slice::<Act>(body) {
                Ok(act) => match acts::perform(self, &act).await {
                    Ok(row) => Reply::json(200, serde_json::to_string(&row).unwrap_or_default()),
                    Err(e) => Reply::json(500, serde_json::json!({ "error": e }).to_string()),
                },
                Err(e) => Reply::json(
                    400,
                    serde_json::json!({ "error": e.to_string() }).to_string(),
                ),
            },
            ("POST", "/__proxy/scenario") => match serde_json::from_slice(body) {
                Ok(scenario) => {
                    self.set(scenario).await;
                    Reply::json(200, "{\"ok\":true}".to_owned())
                }
                Err(e) => Reply::json(
                    400,
                    serde_json::json!({ "error": e.to_string() }).to_string(),
                ),
            },
            _ => Reply::json(404, "{\"error\":\"no such path\"}".to_owned()),
        }
    }
}

/// Serves until the listener's task is ended.
pub(super) async fn serve(listener: TcpListener, proxy: Arc<Proxy>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let proxy = proxy.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| handle(proxy.clone(), request));
            // An error here is a connection that ended, often on purpose.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the scenario ends this connection without an answer")]
struct Ended;

async fn handle(
    proxy: Arc<Proxy>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Ended> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await.map(|b| b.to_bytes()) else {
        return Err(Ended);
    };
    let reply = if head.uri.path().starts_with("/__proxy/") {
        proxy.admin(&head.method, head.uri.path(), &body).await
    } else {
        let header = |name: &str| {
            let value = head.headers.get(name).and_then(|v| v.to_str().ok());
            value.unwrap_or_default()
        };
        let (scope, target) = (header("authorization"), header("x-amz-target"));
        let query = if target.is_empty() {
            Query::read(scope, &body)
        } else {
            Query::read_json(scope, target, header("content-type"), &body)
        };
        // Apart from the connection: a caller that goes away does not undo what it asked.
        let answered = tokio::spawn({
            let proxy = proxy.clone();
            async move { proxy.answer(&query).await }
        });
        answered.await.ok().flatten().ok_or(Ended)?
    };
    let response = Response::builder()
        .status(reply.status)
        .header("content-type", reply.content_type)
        .body(Full::new(Bytes::from(reply.body)));
    response.map_err(|_| Ended)
}
