//! node_exporter as the yardstick: started, scraped at an interval, measured like the agent.
//!
//! Called by the `agent` bench. It is somebody else's program and optional here:
//! without it the bench says how to get it and leaves the comparison out.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use super::process::{Running, wait_for};
use crate::tools;

const PROGRAM: &str = "prometheus-node-exporter";

/// A running node_exporter.
pub(crate) struct Exporter {
    pub(crate) process: Running,
    pub(crate) address: SocketAddr,
}

/// Starts it; none when it is not installed, after saying how to get it.
///
/// # Errors
/// When it is installed but does not answer.
pub(crate) fn start(dir: &Path) -> Result<Option<Exporter>> {
    if !tools::answers(&[PROGRAM, "--version"]) {
        eprintln!(
            "bench: no {PROGRAM} here, so nothing to compare with; get it: apt-get install {PROGRAM}"
        );
        return Ok(None);
    }
    let address = free_address()?;
    let mut process = Running::start(
        PROGRAM,
        Command::new(PROGRAM).arg(format!("--web.listen-address={address}")),
        &dir.join("node_exporter.log"),
    )?;
    wait_for(
        "the first scrape of node_exporter",
        Duration::from_secs(10),
        || {
            process.alive()?;
            Ok(scrape(address).ok())
        },
    )?;
    Ok(Some(Exporter { process, address }))
}

/// A loopback address that nobody listens on now.
///
/// # Errors
/// When there is none.
pub(crate) fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port on the loopback")?;
    listener
        .local_addr()
        .context("no free port on the loopback")
}

/// Reads all metrics once; gives their bytes.
///
/// # Errors
/// When it does not answer with metrics within 5 s.
pub(crate) fn scrape(address: SocketAddr) -> Result<usize> {
    let limit = Duration::from_secs(5);
    let mut stream = TcpStream::connect_timeout(&address, limit).context("cannot connect")?;
    stream
        .set_read_timeout(Some(limit))
        .context("cannot set a time limit")?;
    write!(stream, "GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n").context("cannot ask")?;
    let mut reply = Vec::new();
    stream
        .read_to_end(&mut reply)
        .context("cannot read the answer")?;
    let reply = String::from_utf8_lossy(&reply);
    let status = reply.lines().next().unwrap_or_default();
    if !status.starts_with("HTTP/1.")
        || !status.contains(" 200")
        || !reply.contains("node_cpu_seconds")
    {
        bail!("no metrics in the answer: {status}");
    }
    Ok(reply.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers one connection with the text.
    fn answering(text: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // All of it: what is left unread when the socket closes would reset the connection.
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.extend_from_slice(&byte);
            }
            assert!(request.starts_with(b"GET /metrics HTTP/1.0"));
            stream.write_all(text.as_bytes()).unwrap();
        });
        address
    }

    #[test]
    fn only_metrics_are_a_scrape() {
        let metrics = "HTTP/1.0 200 OK\r\n\r\nnode_cpu_seconds_total{cpu=\"0\"} 1\n";
        assert_eq!(scrape(answering(metrics)).unwrap(), metrics.len());
        let error = scrape(answering("HTTP/1.0 500 Oops\r\n\r\nnode_cpu_seconds\n")).unwrap_err();
        assert!(error.to_string().contains("500 Oops"), "{error}");
        assert!(scrape(answering("HTTP/1.0 200 OK\r\n\r\nhello\n")).is_err());
    }
}
