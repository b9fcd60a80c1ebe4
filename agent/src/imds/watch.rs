//! The task that asks for metadata in rounds: who the instance is until that is known, and the documents in which the
//! cloud tells what it will do to it. Spawned by the collector.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::Rng;
use tokio::sync::watch;

use super::documents::{self, Kind};
use super::pace::{Outcome, Pace};
use super::{Endpoint, Imds, ImdsError, Round};

/// Who this instance is. All of it is fixed for the instance's life.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instance {
    /// Instance id.
    pub id: Option<String>,
    /// Availability zone.
    pub zone: Option<String>,
    /// Instance type.
    pub kind: Option<String>,
}

/// What the task knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Set when read.
    pub instance: Option<Instance>,
    /// Documents as they were read last; absent: never read, empty: there is none now.
    pub documents: BTreeMap<Kind, String>,
    /// The last failure, gone after a success.
    pub trouble: Option<ImdsError>,
}

/// Asks: for documents every `poll`; without it only until it knows who the instance is.
#[must_use]
pub fn spawn(
    endpoint: Endpoint,
    poll: Option<Duration>,
) -> (watch::Receiver<Known>, tokio::task::JoinHandle<()>) {
    let (publish, known) = watch::channel(Known::default());
    let task = tokio::spawn(async move {
        let mut imds = Imds::new(endpoint);
        let mut pace = Pace::default();
        loop {
            let outcome = ask(&mut imds.round(), &publish, poll.is_some()).await;
            let known = matches!(outcome, Outcome::Whole);
            if let Outcome::Part(error) | Outcome::Lost(error) = &outcome {
                tracing::debug!(%error, "instance metadata not read");
            }
            let (rest, trouble) = pace.took(outcome, poll.unwrap_or_default());
            publish.send_if_modified(|known| {
                let new = known.trouble != trouble;
                known.trouble = trouble;
                new
            });
            if known && poll.is_none() {
                return;
            }
            let jitter = rand::rng().random_range(0.8..=1.0);
            tokio::select! {
                () = tokio::time::sleep(rest.mul_f64(jitter)) => {}
                () = publish.closed() => return,
            }
        }
    });
    (known, task)
}

/// One round. What is learnt is published at once.
async fn ask(round: &mut Round<'_>, publish: &watch::Sender<Known>, documents: bool) -> Outcome {
    let known = publish.borrow().instance.is_some();
    if !known {
        match identity(round).await {
            Ok(instance) => publish.send_modify(|known| known.instance = Some(instance)),
            Err(error) => return Outcome::Lost(error),
        }
    }
    let mut missed = None;
    for kind in documents::ALL.into_iter().filter(|_| documents) {
        match round.get(kind.path()).await {
            Ok(text) => {
                let text = text.unwrap_or_default();
                publish.send_if_modified(|known| {
                    let new = known.documents.get(&kind) != Some(&text);
                    known.documents.insert(kind, text);
                    new
                });
            }
            // Half an answer to one question, or a refusal of this path: the others are asked all the same.
            Err(error @ (ImdsError::NoAnswer { hint: "", .. } | ImdsError::Status(_))) => {
                missed = Some(error);
            }
            Err(error) => return Outcome::Lost(error),
        }
    }
    missed.map_or(Outcome::Whole, Outcome::Part)
}

async fn identity(round: &mut Round<'_>) -> Result<Instance, ImdsError> {
    let id = round.get("meta-data/instance-id").await?;
    Ok(Instance {
        // Without an id there is no instance: the endpoint is not (yet) what it should be.
        id: Some(word(id).ok_or(ImdsError::Status(404))?),
        zone: word(round.get("meta-data/placement/availability-zone").await?),
        kind: word(round.get("meta-data/instance-type").await?),
    })
}

fn word(text: Option<String>) -> Option<String> {
    let text = text?;
    let text = text.trim();
    (!text.is_empty() && text.len() <= 128 && text.chars().all(|c| c.is_ascii_graphic()))
        .then(|| text.to_owned())
}
