//! The task that reads the instance's identity once and then only on trouble. Spawned by the collector.

use std::time::Duration;

use rand::Rng;
use tokio::sync::watch;

use super::{Endpoint, Imds, ImdsError};

const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(300);

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
    /// The last failure, gone after a success.
    pub trouble: Option<ImdsError>,
}

/// Asks until it knows.
#[must_use]
pub fn spawn(endpoint: Endpoint) -> (watch::Receiver<Known>, tokio::task::JoinHandle<()>) {
    let (publish, known) = watch::channel(Known::default());
    let task = tokio::spawn(async move {
        let mut imds = Imds::new(endpoint);
        let mut wait = RETRY_MIN;
        loop {
            match identity(&mut imds).await {
                Ok(instance) => {
                    publish.send_replace(Known {
                        instance: Some(instance),
                        trouble: None,
                    });
                    return;
                }
                Err(error) => {
                    tracing::debug!(%error, "no instance metadata");
                    publish.send_modify(|known| known.trouble = Some(error));
                }
            }
            let jitter = rand::rng().random_range(0.5..=1.0);
            tokio::select! {
                () = tokio::time::sleep(wait.mul_f64(jitter)) => {}
                () = publish.closed() => return,
            }
            wait = (wait * 2).min(RETRY_MAX);
        }
    });
    (known, task)
}

async fn identity(imds: &mut Imds) -> Result<Instance, ImdsError> {
    let id = imds.get("meta-data/instance-id").await?;
    Ok(Instance {
        // Without an id there is no instance: the endpoint is not (yet) what it should be.
        id: Some(word(id).ok_or(ImdsError::Status(404))?),
        zone: word(imds.get("meta-data/placement/availability-zone").await?),
        kind: word(imds.get("meta-data/instance-type").await?),
    })
}

fn word(text: Option<String>) -> Option<String> {
    let text = text?;
    let text = text.trim();
    (!text.is_empty() && text.len() <= 128 && text.chars().all(|c| c.is_ascii_graphic()))
        .then(|| text.to_owned())
}
