//! One connection to the coordinator: TCP, TLS 1.3, HTTP/2, a tonic channel that never reconnects by itself.
//!
//! Called by `session` and `identity/enrol`. When and how often is theirs to decide.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drover_proto::limits;
use drover_proto::v1::agent_service_client::AgentServiceClient;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::config::Address;
use crate::identity::tls::{ClientAuth, Trust, client_config};

/// How long connecting may take, names and handshake included.
const DIAL_DEADLINE: Duration = Duration::from_secs(10);
/// A silent connection is asked this often whether it lives, and given up after the second.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));

/// Client of the agent service with both size limits set.
pub type Client = AgentServiceClient<Channel>;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// Nobody answers there.
    #[error("cannot reach {address}")]
    Unreachable {
        /// What was dialled.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// Somebody answers whom we do not believe, or who does not believe us.
    #[error("TLS with {address} failed")]
    Tls {
        /// What was dialled.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// Our own key, certificate or name cannot be used.
    #[error("TLS cannot be set up")]
    Setup(#[source] rustls::Error),
    /// HTTP/2 did not come up.
    #[error("HTTP/2 with {address} failed")]
    Http {
        /// What was dialled.
        address: String,
        /// Why.
        source: tonic::transport::Error,
    },
}

/// Knows where the coordinator is and under which name it must prove itself.
#[derive(Debug, Clone)]
pub struct Dialler {
    /// Where.
    pub address: Address,
    /// The name in its certificate.
    pub server_name: String,
}

impl Dialler {
    /// Connects once.
    ///
    /// # Errors
    /// See [`DialError`].
    pub async fn dial(&self, trust: Trust, auth: Option<ClientAuth>) -> Result<Client, DialError> {
        let config = client_config(trust, auth).map_err(DialError::Setup)?;
        let name = ServerName::try_from(self.server_name.clone()).map_err(|_| {
            DialError::Setup(rustls::Error::General(format!(
                "{:?} is no server name",
                self.server_name
            )))
        })?;
        let stream = tokio::time::timeout(DIAL_DEADLINE, self.connect(config, name))
            .await
            .map_err(|_| DialError::Unreachable {
                address: self.address.to_string(),
                source: io::ErrorKind::TimedOut.into(),
            })??;
        let channel = self.channel(stream).await?;
        Ok(AgentServiceClient::new(channel)
            .max_decoding_message_size(limits::MESSAGE_BYTES)
            .max_encoding_message_size(limits::MESSAGE_BYTES))
    }

    async fn connect(
        &self,
        config: rustls::ClientConfig,
        name: ServerName<'static>,
    ) -> Result<TlsStream<TcpStream>, DialError> {
        let target = (self.address.host.as_str(), self.address.port);
        let unreachable = |source| DialError::Unreachable {
            address: self.address.to_string(),
            source,
        };
        let tcp = TcpStream::connect(target).await.map_err(unreachable)?;
        tcp.set_nodelay(true).map_err(unreachable)?;
        TlsConnector::from(Arc::new(config))
            .connect(name, tcp)
            .await
            .map_err(|source| DialError::Tls {
                address: self.address.to_string(),
                source,
            })
    }

    async fn channel(&self, stream: TlsStream<TcpStream>) -> Result<Channel, DialError> {
        // Handed out once: when it breaks, the session decides when the next one is dialled.
        let once = Arc::new(Mutex::new(Some(TokioIo::new(stream))));
        let connector = tower::service_fn(move |_: Uri| {
            let stream = once.lock().ok().and_then(|mut held| held.take());
            std::future::ready(stream.ok_or(io::Error::from(io::ErrorKind::NotConnected)))
        });
        let uri = Uri::builder()
            .scheme("https")
            .authority(self.server_name.as_str())
            .path_and_query("/")
            .build()
            .map_err(|error| DialError::Setup(rustls::Error::General(error.to_string())))?;
        Endpoint::from(uri)
            .http2_keep_alive_interval(KEEPALIVE.0)
            .keep_alive_timeout(KEEPALIVE.1)
            .keep_alive_while_idle(true)
            .connect_with_connector(connector)
            .await
            .map_err(|source| DialError::Http {
                address: self.address.to_string(),
                source,
            })
    }
}
