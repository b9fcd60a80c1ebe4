//! A fault proxy between an AWS client and moto.
//!
//! moto speaks AWS's wire format and knows nothing of time, shortage, limits or LaunchInstances. This proxy
//! adds them, driven by a [`Scenario`], and keeps a [`Ledger`] of what really happened. Used in-process by
//! tests, and as the program `aws-proxy`. Described in `tests/README-aws-proxy.md`. It knows nothing of Drover.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

mod activity;
mod acts;
mod advance;
mod clock;
mod describe;
mod desired;
mod ending;
mod events;
mod group_view;
mod groups;
mod grow;
mod hooks;
mod iam;
mod launch;
mod ledger;
mod member;
mod offers;
mod overlay;
mod query;
mod refusal;
mod reply;
mod scenario;
mod server;
mod state;
mod terminate;
mod upstream;
mod views;
mod warm;
mod xml;

pub(crate) use views::note_outside_change;

pub use ledger::{Cause, End, Happened, Launch, Ledger, Lifecycle, Mutation};
pub use scenario::{
    Act, Decision, Deed, Effect, EventKind, Fault, OverlayRow, PermissionRow, QueueRow, QuotaRow,
    Ration, RefreshRow, ReservationRow, Scenario, SpotPriceRow, Timing, Why,
};

/// A running proxy; it ends when this is dropped.
pub struct AwsProxy {
    address: SocketAddr,
    proxy: Arc<server::Proxy>,
    task: JoinHandle<()>,
    time: JoinHandle<()>,
}

impl AwsProxy {
    /// Starts on a free port of the loopback, in front of the moto server at `moto`.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(moto: &str, scenario: Scenario) -> std::io::Result<Self> {
        Self::start_on("127.0.0.1:0", moto, scenario).await
    }

    /// Starts on `listen`.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn start_on(listen: &str, moto: &str, scenario: Scenario) -> std::io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let proxy = Arc::new(server::Proxy::new(moto, scenario));
        let task = tokio::spawn(server::serve(listener, proxy.clone()));
        let time = tokio::spawn(advance::run(proxy.clone()));
        Ok(Self {
            address,
            proxy,
            task,
            time,
        })
    }

    /// The endpoint to give to a client.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Replaces the scenario; faults are counted anew.
    pub async fn set(&self, scenario: Scenario) {
        self.proxy.set(scenario).await;
    }

    /// Lets something happen at once; gives what happened, or why it did not.
    ///
    /// # Panics
    /// When moto does not do its part.
    pub async fn act(&self, region: &str, group: &str, deed: Deed) -> Happened {
        let act = Act {
            region: region.to_owned(),
            group: group.to_owned(),
            after_ms: 0,
            deed,
        };
        let done = acts::perform(&self.proxy, &act).await;
        done.unwrap_or_else(|e| panic!("{act:?}: {e}"))
    }

    /// Makes a queue in moto and gives its address, for [`QueueRow`] and for a coordinator.
    ///
    /// # Panics
    /// When moto refuses.
    pub async fn create_queue(&self, region: &str, name: &str) -> String {
        let made = self
            .call(region, Service::Sqs, "CreateQueue", &[("QueueName", name)])
            .await
            .expect("a queue");
        let mut url = String::new();
        let mut tree = xml::Element::parse(&made).expect("an answer");
        tree.each_mut("QueueUrl", &mut |e| url.clone_from(&e.text));
        url
    }

    /// Makes a call through the proxy, as any client would; gives the answer's text.
    ///
    /// # Errors
    /// The answer's text when it is a refusal.
    pub async fn call(
        &self,
        region: &str,
        service: Service,
        action: &str,
        form: &[(&str, &str)],
    ) -> Result<String, String> {
        let form: Vec<_> = form
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let (name, version) = service.spelled();
        query_moto(&self.url(), region, name, version, action, &form).await
    }

    /// Makes a JSON call through the proxy; `target` is for instance `AmazonSQS.ReceiveMessage`.
    ///
    /// # Errors
    /// The answer's text when it is a refusal.
    pub async fn call_json(
        &self,
        region: &str,
        service: &str,
        target: &str,
        body: &serde_json::Value,
    ) -> Result<serde_json::Value, String> {
        let query = query::Query {
            region: region.to_owned(),
            service: service.to_owned(),
            json: Some(query::JsonCall {
                target: target.to_owned(),
                content_type: "application/x-amz-json-1.0".to_owned(),
                body: body.clone(),
            }),
            ..query::Query::default()
        };
        let reply = upstream::Upstream::new(&self.url()).forward(&query).await?;
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        if !reply.is_ok() {
            return Err(text);
        }
        serde_json::from_str(&text).or(Ok(serde_json::Value::Null))
    }

    /// What happened so far.
    pub fn ledger(&self) -> Ledger {
        self.proxy.ledger().clone()
    }

    /// Ends when the server does, which it does only with this process.
    pub async fn wait(mut self) {
        let _ = (&mut self.task).await;
    }
}

impl Drop for AwsProxy {
    fn drop(&mut self) {
        self.task.abort();
        self.time.abort();
    }
}

/// A service of AWS that speaks the Query protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Auto Scaling.
    AutoScaling,
    /// EC2.
    Ec2,
    /// IAM.
    Iam,
    /// STS.
    Sts,
    /// SQS, in its older form.
    Sqs,
}

impl Service {
    /// Name in a signature's scope, and version of the interface.
    fn spelled(self) -> (&'static str, &'static str) {
        match self {
            Self::AutoScaling => ("autoscaling", "2011-01-01"),
            Self::Ec2 => ("ec2", "2016-11-15"),
            Self::Iam => ("iam", "2010-05-08"),
            Self::Sts => ("sts", "2011-06-15"),
            Self::Sqs => ("sqs", "2012-11-05"),
        }
    }
}

/// Makes one Query call of `service` at `base` and gives the answer's text.
pub(crate) async fn query_moto(
    base: &str,
    region: &str,
    service: &str,
    version: &str,
    action: &str,
    form: &[(String, String)],
) -> Result<String, String> {
    let body = form_urlencoded::Serializer::new(String::new())
        .append_pair("Action", action)
        .append_pair("Version", version)
        .extend_pairs(form)
        .finish();
    let reply = upstream::Upstream::new(base)
        .send(region, service, body.into_bytes())
        .await?;
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    if reply.is_ok() { Ok(text) } else { Err(text) }
}

#[cfg(test)]
mod tests;
