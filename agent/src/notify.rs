//! Tells systemd how the agent is (sd_notify), over the datagram socket that NOTIFY_SOCKET names.
//!
//! Called by `run`. Without systemd everything here does nothing. Protocol: sd_notify(3).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager's end.
#[derive(Debug)]
pub struct Notify {
    target: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Notify {
    /// From NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID as systemd sets them.
    #[must_use]
    pub fn from_env() -> Self {
        let var = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        Self::new(
            var("NOTIFY_SOCKET").as_deref(),
            var("WATCHDOG_USEC").as_deref(),
            var("WATCHDOG_PID").as_deref(),
        )
    }

    fn new(socket: Option<&str>, watchdog_usec: Option<&str>, watchdog_pid: Option<&str>) -> Self {
        let target = socket.and_then(|name| match open(name) {
            Ok(target) => Some(target),
            Err(error) => {
                tracing::warn!(%error, name, "NOTIFY_SOCKET cannot be used");
                None
            }
        });
        let ours = watchdog_pid.is_none_or(|pid| pid == std::process::id().to_string());
        let watchdog = watchdog_usec
            .and_then(|text| text.parse().ok())
            .filter(|usec| ours && *usec > 0)
            .map(|usec: u64| Duration::from_micros(usec) / 2);
        Self { target, watchdog }
    }

    /// How often [`Notify::alive`] is due; `None` without a watchdog.
    #[must_use]
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.filter(|_| self.target.is_some())
    }

    /// Config and state are loaded. Says nothing of the coordinator or the driver: both may take long.
    pub fn ready(&self) {
        self.send("READY=1\nSTATUS=running");
    }

    /// The main loop turns.
    pub fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    /// The agent ends.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=stopping");
    }

    fn send(&self, text: &str) {
        let Some((socket, address)) = &self.target else {
            return;
        };
        if let Err(error) = socket.send_to_addr(text.as_bytes(), address) {
            tracing::warn!(%error, "systemd not notified");
        }
    }
}

fn open(name: &str) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    // A full queue must not hold the main loop.
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 256];
        let count = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..count]).into_owned()
    }

    #[test]
    fn speaks_to_path_and_abstract_sockets() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        let name = format!("drover-notify-test-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&abstract_address).unwrap();
        for (socket, text) in [
            (&by_path, path.to_str().unwrap().to_owned()),
            (&by_name, format!("@{name}")),
        ] {
            let notify = Notify::new(Some(&text), None, None);
            notify.ready();
            assert!(heard(socket).starts_with("READY=1\n"));
            notify.alive();
            assert_eq!(heard(socket), "WATCHDOG=1");
            notify.stopping();
            assert!(heard(socket).starts_with("STOPPING=1\n"));
        }
    }

    #[test]
    fn the_watchdog_is_fed_at_half_its_time_and_only_by_the_one_it_watches() {
        let socket = Some("@drover-nobody-there");
        let own = std::process::id().to_string();
        for (usec, pid, want) in [
            (Some("30000000"), None, Some(15)),
            (Some("30000000"), Some(own.as_str()), Some(15)),
            (Some("30000000"), Some("1"), None),
            (Some("0"), None, None),
            (Some("soon"), None, None),
            (None, None, None),
        ] {
            let interval = Notify::new(socket, usec, pid).watchdog_interval();
            assert_eq!(interval, want.map(Duration::from_secs), "{usec:?} {pid:?}");
        }
        let nobody = Notify::new(None, Some("30000000"), None);
        assert_eq!(nobody.watchdog_interval(), None);
        nobody.ready();
    }
}
