//! `[server]`: the gRPC port, the HTTP listener, names and directories.
//!
//! Called by `config::parse`.

use drover_config::Section;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The gRPC port, names, directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Address of the one gRPC port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Address of the plain HTTP listener for metrics and health; port 0 takes a free one, absent: there is none.
    pub http: Option<SocketAddr>,
    /// Names and addresses in the server certificate beside coordinator.drover.internal.
    pub names: Vec<String>,
    /// CA key, store, plans.
    pub state_dir: PathBuf,
    /// Where the first start writes the admin context; absent: ~/.config/drover of the user.
    pub context_dir: Option<PathBuf>,
}

pub(super) fn read(section: &Section<'_>) -> Server {
    let address = |text: &str| -> Result<SocketAddr, String> {
        text.parse()
            .map_err(|_| format!("{text:?} is no address with a port"))
    };
    let listen = section.parsed("listen", "0.0.0.0:7443", address);
    let http = section.parsed("http", "127.0.0.1:9464", address);
    let listen = listen.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 7443)));
    if http.is_some_and(|http| collide(http, listen)) {
        section.report(
            section.offset(),
            "http",
            "has the port of listen, which speaks gRPC over TLS and nothing else",
            "write http = \"127.0.0.1:9464\"",
        );
    }
    let names = section.texts("names", "write names = [\"localhost\"]");
    let found = Server {
        listen,
        http,
        names: names.into_iter().flatten().map(|at| at.value).collect(),
        state_dir: section
            .absolute("state_dir")
            .unwrap_or_else(|| "/var/lib/drover".into()),
        context_dir: section.absolute("context_dir"),
    };
    section.finish();
    found
}

/// Both cannot be had on one host.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let (a, b) = (one.ip(), other.ip());
    one.port() != 0
        && one.port() == other.port()
        && (a == b || a.is_unspecified() || b.is_unspecified())
}
