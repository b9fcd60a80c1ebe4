//! `drover serve` as a process: what it says and how it ends when it may not go on.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Nothing here takes so long.
const DEADLINE: Duration = Duration::from_secs(180);

/// A coordinator that runs; it ends with the value.
struct Serve {
    child: Child,
    lines: Receiver<String>,
    told: Vec<String>,
}

impl Serve {
    fn start(home: &Path, config: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_drover"))
            .args(["serve", "--config"])
            .arg(config)
            .env("DROVER_CONFIG_DIR", home.join("user"))
            .env("NO_COLOR", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let stderr = child.stderr.take().expect("piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            lines,
            told: Vec::new(),
        }
    }

    /// Waits for a line with this in it.
    fn until(&mut self, part: &str) {
        let end = Instant::now() + DEADLINE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    let found = line.contains(part);
                    self.told.push(line);
                    if found {
                        return;
                    }
                }
                Err(_) => panic!("{part:?} was not said: {:#?}", self.told),
            }
        }
    }

    /// Waits for the end, with all that was said.
    fn end(mut self) -> (ExitStatus, String) {
        let end = Instant::now() + DEADLINE;
        // The lines end when the process does.
        while let Ok(line) = self
            .lines
            .recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            self.told.push(line);
        }
        assert!(Instant::now() < end, "it goes on: {:#?}", self.told);
        let status = self.child.wait().expect("it ended");
        (status, self.told.join("\n"))
    }

    fn terminate(&self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).expect("pid"));
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("signal");
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn config(home: &Path) -> PathBuf {
    let path = home.join("drover.toml");
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nstate_dir = \"{}\"\n",
        home.join("state").display()
    );
    std::fs::write(&path, text).expect("config");
    path
}

#[test]
fn a_coordinator_that_is_fenced_by_another_fails_and_says_so() {
    let home = tempfile::tempdir().expect("directory");
    let config = config(home.path());
    let mut first = Serve::start(home.path(), &config);
    first.until("nothing will ever grow");
    first.until("the coordinator runs");
    let mut second = Serve::start(home.path(), &config);
    second.until("another coordinator led this store moments ago");
    second.until("pointed to another address of this coordinator");
    second.until("the coordinator runs");
    let (status, told) = first.end();
    assert_eq!(status.code(), Some(1), "{told}");
    assert!(
        told.contains("error: another coordinator took over the store"),
        "{told}"
    );
    second.terminate();
    let (status, told) = second.end();
    assert_eq!(status.code(), Some(0), "{told}");
}

#[test]
fn a_key_without_its_store_starts_no_new_fleet() {
    let home = tempfile::tempdir().expect("directory");
    let config = config(home.path());
    let mut first = Serve::start(home.path(), &config);
    first.until("the coordinator runs");
    first.terminate();
    assert_eq!(first.end().0.code(), Some(0));
    let state = home.path().join("state");
    for file in ["drover.db-wal", "drover.db-shm"] {
        let _ = std::fs::remove_file(state.join(file));
    }
    std::fs::write(state.join("drover.db"), "").expect("emptied");
    let (status, told) = Serve::start(home.path(), &config).end();
    assert_eq!(status.code(), Some(1), "{told}");
    assert!(told.contains("the store was lost or emptied"), "{told}");
    // What the first start left when it died between the key and its record is no lost store.
    std::fs::rename(state.join("ca.key"), state.join("ca.key.new")).expect("renamed");
    let mut again = Serve::start(home.path(), &config);
    again.until("the coordinator runs");
    assert!(state.join("ca.key").exists());
    again.terminate();
    assert_eq!(again.end().0.code(), Some(0));
}

#[test]
fn a_config_that_cannot_be_read_says_why() {
    let home = tempfile::tempdir().expect("directory");
    let (status, told) = Serve::start(home.path(), &home.path().join("none.toml")).end();
    assert_eq!(status.code(), Some(64), "{told}");
    assert!(told.contains("none.toml: No such file"), "{told}");
}
