//! Whether the agent ends because the whole host goes down. Asked once, by `run`, when it was told to stop.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use crate::clock;
use crate::session::outbox::Notice;

/// The service manager may take so long to say.
const LIMIT: Duration = Duration::from_secs(1);
const SYSTEMCTL: &str = "/usr/bin/systemctl";

/// The notice to raise when systemd is stopping the host; `None` on a mere stop of the agent, and without systemd.
pub async fn notice() -> Option<Notice> {
    if !Path::new("/run/systemd/system").is_dir() {
        return None;
    }
    let asked = Command::new(SYSTEMCTL)
        .arg("is-system-running")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    // It exits with 1 for every state but running.
    let said = timeout(LIMIT, asked).await.ok()?.ok()?;
    judge(&String::from_utf8_lossy(&said.stdout), &clock::boot_id())
}

fn judge(said: &str, boot_id: &str) -> Option<Notice> {
    (said.trim() == "stopping").then(|| Notice {
        id: format!("shutdown/{boot_id}"),
        kind: "shutdown".to_owned(),
        at_unix_ms: clock::unix_ms(),
        deadline_unix_ms: None,
        subject: String::new(),
        message: "the host shuts down".to_owned(),
        withdrawn: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_that_stops_tells_it() {
        let told = judge("stopping\n", "b-1").expect("it stops");
        assert_eq!(
            (told.id.as_str(), told.kind.as_str()),
            ("shutdown/b-1", "shutdown")
        );
        for said in ["running\n", "degraded\n", "offline\n", ""] {
            assert_eq!(judge(said, "b-1"), None, "{said:?}");
        }
    }
}
