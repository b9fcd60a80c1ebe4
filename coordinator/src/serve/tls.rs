//! The one port: TLS 1.3 only, client certificates optional and verified against our own CA. Called by `serve`. Who
//! may do what is decided in `auth`; here a peer is only made out.

use crate::adapters::ca::{Ca, IssueError, PeerCertificate};
use crate::ports::clock::Clock;
use drover_core::model::UnixMs;
use rustls::pki_types::UnixTime;
use rustls::server::{
    ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

/// A handshake that takes longer is given up.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Handshakes at once; more wait in the listen queue.
const HANDSHAKES: usize = 512;

/// Handshakes that came to nothing are told at most this often.
const QUIET: Duration = Duration::from_secs(60);

/// Why the port cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No certificate for these names.
    #[error("cannot make the coordinator's certificate; see server.names in the config")]
    Certificate(#[from] IssueError),
    /// rustls refuses.
    #[error("cannot set up TLS")]
    Config(#[from] rustls::Error),
    /// The verifier cannot be made.
    #[error("cannot verify client certificates")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// Our clock for rustls, so that tests own time here as well.
pub(super) struct TlsClock(pub(super) Arc<dyn Clock>);

impl std::fmt::Debug for TlsClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TlsClock")
    }
}

impl rustls::time_provider::TimeProvider for TlsClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_millis(
            self.0.wall().0,
        )))
    }
}

/// The coordinator's certificate, made anew at two thirds of its life.
struct OwnCertificate {
    ca: Arc<Ca>,
    names: Vec<String>,
    clock: Arc<dyn Clock>,
    current: Mutex<(Arc<CertifiedKey>, UnixMs)>,
}

impl std::fmt::Debug for OwnCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnCertificate")
    }
}

fn make(ca: &Ca, names: &[String], now: UnixMs) -> Result<(Arc<CertifiedKey>, UnixMs), TlsError> {
    let identity = ca.issue_server(names, now)?;
    let provider = rustls::crypto::ring::default_provider();
    let key = CertifiedKey::from_der(identity.chain, identity.key, &provider)?;
    Ok((Arc::new(key), identity.renew_at))
}

impl ResolvesServerCert for OwnCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.wall();
        if now >= current.1 {
            match make(&self.ca, &self.names, now) {
                Ok(fresh) => *current = fresh,
                Err(error) => tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "cannot renew the coordinator's certificate"
                ),
            }
        }
        Some(current.0.clone())
    }
}

/// TLS as this port speaks it.
///
/// # Errors
/// A name that cannot be in a certificate, or rustls refuses.
pub fn config(
    ca: &Arc<Ca>,
    names: &[String],
    clock: &Arc<dyn Clock>,
) -> Result<Arc<rustls::ServerConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(ca.der().clone())?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()?;
    let own = OwnCertificate {
        ca: ca.clone(),
        names: names.to_vec(),
        clock: clock.clone(),
        current: Mutex::new(make(ca, names, clock.wall())?),
    };
    let time = Arc::new(TlsClock(clock.clone()));
    let mut config = rustls::ServerConfig::builder_with_details(provider, time)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(own));
    config.alpn_protocols = vec![b"h2".to_vec()];
    // No resumption: every connection shows its certificate anew.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Who is at the other end; in the extensions of each request.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Address.
    pub address: SocketAddr,
    /// Certificate, verified against our CA; absent when none was shown.
    pub certificate: Option<Arc<PeerCertificate>>,
}

/// One connection after its handshake.
pub struct Connection {
    stream: TlsStream<TcpStream>,
    peer: Peer,
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Handshakes that came to nothing: one line for all of them in a while, whatever a peer does.
#[derive(Debug, Default)]
struct Lost {
    /// When it was last told, and how many came to nothing since.
    told: Mutex<(Option<Instant>, u64)>,
}

impl Lost {
    /// Counts one; the count when it is time to tell it.
    fn count(&self, now: Instant) -> Option<u64> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.1 += 1;
        if told.0.is_some_and(|at| now.duration_since(at) < QUIET) {
            return None;
        }
        told.0 = Some(now);
        Some(std::mem::take(&mut told.1))
    }

    fn tell(&self, peer: SocketAddr) {
        if let Some(handshakes) = self.count(Instant::now()) {
            tracing::warn!(
                handshakes,
                last_peer = %peer,
                "TLS handshakes came to nothing; the log level debug tells each"
            );
        }
    }
}

/// Connections whose handshake is done. A slow or hostile peer holds nobody else up. Accepting ends when the stream
/// is dropped.
pub fn incoming(
    listener: TcpListener,
    config: Arc<rustls::ServerConfig>,
) -> ReceiverStream<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(64);
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(config);
        let lost = Arc::new(Lost::default());
        let room = Arc::new(Semaphore::new(HANDSHAKES));
        loop {
            let Ok(place) = room.clone().acquire_owned().await else {
                return;
            };
            let accepted = tokio::select! {
                () = sender.closed() => return,
                accepted = listener.accept() => accepted,
            };
            let (tcp, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "cannot accept");
                    // Out of descriptors, as a rule: let some go first.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let (acceptor, sender, lost) = (acceptor.clone(), sender.clone(), lost.clone());
            tokio::spawn(async move {
                let done = tokio::time::timeout(HANDSHAKE, handshake(acceptor, tcp, address)).await;
                drop(place);
                match done {
                    Ok(Ok(connection)) => {
                        // The server is stopping: nobody takes it.
                        let _ = sender.send(Ok(connection)).await;
                    }
                    Ok(Err(error)) => {
                        tracing::debug!(
                            peer = %address, error = &error as &dyn std::error::Error,
                            "handshake refused"
                        );
                        lost.tell(address);
                    }
                    Err(_) => {
                        tracing::debug!(peer = %address, "handshake took too long");
                        lost.tell(address);
                    }
                }
            });
        }
    });
    ReceiverStream::new(receiver)
}

async fn handshake(
    acceptor: TlsAcceptor,
    tcp: TcpStream,
    address: SocketAddr,
) -> io::Result<Connection> {
    tcp.set_nodelay(true)?;
    let stream = acceptor.accept(tcp).await?;
    let leaf = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(<[_]>::first);
    let certificate = leaf
        .map(|der| PeerCertificate::read(der).map(Arc::new))
        .transpose()
        .map_err(io::Error::other)?;
    Ok(Connection {
        stream,
        peer: Peer {
            address,
            certificate,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_hundred_lost_handshakes_are_one_line_a_minute() {
        let lost = Lost::default();
        let start = Instant::now();
        let told: Vec<u64> = (0..500)
            .filter_map(|i| lost.count(start + Duration::from_millis(i)))
            .collect();
        assert_eq!(told, [1]);
        assert_eq!(lost.count(start + QUIET), Some(500));
        assert_eq!(lost.count(start + QUIET), None);
    }
}
