//! The one connection of the CLI: TLS 1.3 with the context's certificate, the pinned CA and the fixed name of the
//! coordinator whatever address is dialled. Used by every noun; decides nothing about them.

use super::Globals;
use super::context::{self, Profile};
use super::exit::{CliError, one_line};
use crate::files::contexts;
use drover_proto::limits;
use drover_proto::v1::admin_service_client::AdminServiceClient;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint, Uri};

/// How long one answer may take without `--timeout`.
pub const ANSWER: Duration = Duration::from_secs(30);
/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);

/// A connected admin client.
#[derive(Clone)]
pub struct Admin {
    /// The client.
    pub client: AdminServiceClient<Channel>,
    timeout: Duration,
}

impl Admin {
    /// A message with this connection's deadline on the answer.
    pub fn ask<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        request.set_timeout(self.timeout);
        request
    }
}

/// Tells the person what an answer has to say beside it.
pub fn say_note<T>(answer: &tonic::Response<T>) {
    for (key, word) in [
        (limits::NOTE, "nothing to change"),
        (limits::WARNING, "warning"),
    ] {
        let said = answer.metadata().get_bin(key);
        let bytes = said.and_then(|said| said.to_bytes().ok());
        if let Some(bytes) = bytes {
            let text = String::from_utf8_lossy(&bytes);
            super::output::say(&format!("{word}: {text}"));
        }
    }
}

/// Connects as the chosen context says.
///
/// # Errors
/// Config errors of the context and its files; unreachable when nobody answers or TLS fails.
pub async fn admin(globals: &Globals) -> Result<Admin, CliError> {
    let dir = contexts::directory()?;
    let (name, profile) = context::choose(&dir, globals.context.as_deref())?;
    let timeout = globals.timeout_ms.map_or(ANSWER, Duration::from_millis);
    match connect(&name, &profile, timeout).await {
        Err(CliError::Unreachable(why)) if why.contains(OTHER_CA) => {
            let fix = another_context(&dir, &name, &profile.address);
            Err(CliError::Unreachable(why + &fix))
        }
        done => done,
    }
}

/// Connects to one profile.
///
/// # Errors
/// As [`admin`].
pub async fn connect(name: &str, profile: &Profile, timeout: Duration) -> Result<Admin, CliError> {
    let channel = channel(name, profile, timeout).await?;
    Ok(Admin {
        client: AdminServiceClient::new(channel)
            .max_decoding_message_size(limits::ADMIN_REPLY_BYTES)
            .max_encoding_message_size(limits::MESSAGE_BYTES),
        timeout,
    })
}

/// The connection itself.
///
/// # Errors
/// As [`admin`].
pub async fn channel(
    name: &str,
    profile: &Profile,
    timeout: Duration,
) -> Result<Channel, CliError> {
    let tls = Arc::new(tls(profile)?);
    let (uri, host, port) = address(&profile.address)
        .map_err(|why| CliError::Config(format!("context {name:?}: {why}")))?;
    let endpoint = Endpoint::from(uri)
        .connect_timeout(CONNECT.min(timeout))
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_timeout(Duration::from_secs(10))
        .keep_alive_while_idle(true);
    endpoint
        .connect_with_connector(tower::service_fn(move |_: Uri| {
            let tls = Arc::clone(&tls);
            let host = host.clone();
            async move { dial(&host, port, tls).await }
        }))
        .await
        .map_err(|error| {
            CliError::Unreachable(format!(
                "cannot reach the coordinator at {} (context {name:?}): {}",
                profile.address,
                root_cause(&error)
            ))
        })
}

/// Looks whether a context can be used at all: its address and its files. Connects to nothing.
///
/// # Errors
/// A usage error of the address, a config error of a file.
pub fn check(profile: &Profile) -> Result<(), CliError> {
    address(&profile.address).map_err(|why| CliError::Usage(format!("--address: {why}")))?;
    tls(profile).map(drop)
}

/// host:port as something to dial.
fn address(text: &str) -> Result<(Uri, String, u16), String> {
    let bad = |why: &str| format!("address {text:?} {why}; write host:port, like 127.0.0.1:7443");
    if text.contains(['/', '@', '?', '#']) || text.contains(char::is_whitespace) {
        return Err(bad("is more than a host and a port"));
    }
    let uri: Uri = format!("http://{text}")
        .parse()
        .map_err(|_| bad("is not an address"))?;
    let host = uri.host().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| bad("has no host"))?;
    let host = host.trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().ok_or_else(|| bad("has no port"))?;
    if port == 0 {
        return Err(bad("has port 0"));
    }
    Ok((uri, host, port))
}

type Stream = hyper_util::rt::TokioIo<tokio_rustls::client::TlsStream<tokio::net::TcpStream>>;

async fn dial(host: &str, port: u16, tls: Arc<rustls::ClientConfig>) -> std::io::Result<Stream> {
    let tcp = tokio::net::TcpStream::connect((host, port)).await?;
    tcp.set_nodelay(true)?;
    let name = ServerName::try_from(limits::COORDINATOR_NAME).map_err(std::io::Error::other)?;
    let stream = tokio_rustls::TlsConnector::from(tls)
        .connect(name, tcp)
        .await?;
    Ok(hyper_util::rt::TokioIo::new(stream))
}

fn tls(profile: &Profile) -> Result<rustls::ClientConfig, CliError> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in certificates(&profile.ca)? {
        roots
            .add(certificate)
            .map_err(|error| bad_file(&profile.ca, &error.to_string()))?;
    }
    let chain = certificates(&profile.cert)?;
    let key = PrivateKeyDer::from_pem_file(&profile.key)
        .map_err(|error| bad_file(&profile.key, &error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| CliError::Failed(format!("cannot set up TLS 1.3: {error}")))?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(|error| bad_file(&profile.cert, &error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CliError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(found) if found.is_empty() => Err(bad_file(path, "no certificate in it")),
        Ok(found) => Ok(found),
        Err(error) => Err(bad_file(path, &error.to_string())),
    }
}

fn bad_file(path: &Path, why: &str) -> CliError {
    CliError::Config(format!(
        "the context's {} cannot be used: {}",
        path.display(),
        one_line(why)
    ))
}

/// The innermost error: "Connection refused", "invalid peer certificate", and not tonic's "transport error".
fn root_cause(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = one_line(&innermost.to_string());
    if text.contains(OTHER_CA) {
        format!("{text}: it is not the coordinator whose CA this context pins")
    } else {
        text
    }
}

/// What rustls says of a certificate that the context's CA did not sign, or that does not count.
const OTHER_CA: &str = "invalid peer certificate";

/// What a user does when a context pins another CA than the coordinator at its address has, as after a fresh
/// `state_dir`: the newest other context of that address, or how one is made.
fn another_context(dir: &Path, name: &str, address: &str) -> String {
    let contexts = contexts::load(dir).unwrap_or_default().context;
    let others = contexts
        .iter()
        .filter(|(other, profile)| *other != name && profile.address == address);
    let written = |profile: &Profile| {
        let made = std::fs::metadata(dir.join(&profile.ca)).and_then(|file| file.modified());
        made.ok()
    };
    match others.max_by_key(|(_, profile)| written(profile)) {
        Some((other, _)) => format!("; another context has that address: `drover context use {other}`"),
        None => "; on its host, `drover serve` writes a context for the user who starts it; elsewhere, take a certificate \
                 of `drover certificates issue` with `drover context add`"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_a_host_and_a_port() {
        for (text, host, port) in [
            ("127.0.0.1:7443", "127.0.0.1", 7443),
            ("[::1]:7443", "::1", 7443),
            ("fleet.example:1", "fleet.example", 1),
        ] {
            let (_, found, number) = address(text).expect(text);
            assert_eq!((found.as_str(), number), (host, port));
        }
        for text in [
            "",
            "host",
            "host:",
            ":7443",
            "host:0",
            "host:99999",
            "https://h:1",
            "h:1/x",
            "a b:1",
        ] {
            let why = address(text).expect_err(text);
            assert!(why.contains("write host:port"), "{why}");
        }
    }

    #[test]
    fn a_context_of_another_ca_names_the_newest_one_of_that_address() {
        let dir = tempfile::tempdir().expect("directory");
        let dir = dir.path();
        let add = |name: &str, address: &str, age: u64| {
            let ca = dir.join(format!("{name}.pem"));
            let file = std::fs::File::create(&ca).expect("file");
            let made = std::time::SystemTime::now() - Duration::from_secs(age);
            file.set_modified(made).expect("time");
            let profile = Profile {
                address: address.to_owned(),
                cert: ca.clone(),
                key: ca.clone(),
                ca,
            };
            contexts::save(dir, name, &profile).expect("save");
        };
        add("local", "127.0.0.1:7443", 30);
        add("far", "far:7443", 1);
        let fix = another_context(dir, "local", "127.0.0.1:7443");
        assert!(fix.contains("drover certificates issue"), "{fix}");
        add("local-aaaa", "127.0.0.1:7443", 20);
        add("local-0000", "127.0.0.1:7443", 10);
        let fix = another_context(dir, "local", "127.0.0.1:7443");
        assert!(fix.contains("`drover context use local-0000`"), "{fix}");
    }
}
