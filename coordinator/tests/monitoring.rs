//! `drover serve` with a listener for monitoring, as a process: what is scraped after a person's acts, and addresses that
//! cannot be had.

use drover_tests::exposition::{Exposition, ask, scrape};
use drover_tests::wait;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Nothing here takes so long.
const DEADLINE: Duration = Duration::from_secs(180);

/// A coordinator over a static pool, and where its metrics are.
struct Serve {
    home: tempfile::TempDir,
    child: Child,
    http: SocketAddr,
}

fn drover(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drover"));
    command
        .env("DROVER_CONFIG_DIR", home.join("user"))
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    command
}

fn config(home: &Path, http: &str) -> PathBuf {
    let path = home.join("drover.toml");
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nhttp = \"{http}\"\nstate_dir = \"{}\"\n\n\
         [control]\ninterval = \"1s\"\nsettle = \"1s\"\n\n\
         [[pool]]\nname = \"rack\"\nkind = \"static\"\nsite = \"office\"\nmode = \"full\"\n\
         hosts = [\"titan-01\", \"titan-02\"]\ngpus = 4\ncpus = 12\nmemory = \"64GiB\"\n",
        home.join("state").display()
    );
    std::fs::write(&path, text).expect("config");
    path
}

impl Serve {
    fn start() -> Self {
        let home = tempfile::tempdir().expect("directory");
        let mut child = drover(home.path())
            .args(["serve", "--config"])
            .arg(config(home.path(), "127.0.0.1:0"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let stderr = child.stderr.take().expect("piped");
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let line = lines
            .find(|line| line.contains("metrics and health are served"))
            .expect("it says where");
        let address = line.rsplit("http=").next().expect("the last field");
        let http = address.trim().parse().expect("an address");
        std::thread::spawn(move || lines.for_each(drop));
        Self { home, child, http }
    }

    fn cli(&self, args: &[&str]) -> Output {
        let output = drover(self.home.path()).args(args).output().expect("runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        output
    }

    /// Scrapes until `done` finds what it looks for.
    fn until(&self, what: &str, mut done: impl FnMut(&Exposition) -> bool) -> Exposition {
        wait::until(what, DEADLINE, || {
            let page = scrape(self.http);
            done(&page).then_some(page)
        })
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_coordinator_is_scraped_before_and_after_what_a_person_does() {
    let serve = Serve::start();
    wait::until("it is ready", DEADLINE, || {
        let answer = ask(serve.http, "GET", "/readyz", "*/*")?;
        (answer.status == 200).then_some(())
    });
    let alive = ask(serve.http, "GET", "/healthz", "*/*").expect("an answer");
    assert_eq!((alive.status, alive.body.as_str()), (200, "alive\n"));
    let plain = ask(serve.http, "GET", "/metrics", "*/*").expect("an answer");
    assert!(
        plain.head.contains("text/plain; version=0.0.4"),
        "{}",
        plain.head
    );
    assert!(
        plain
            .body
            .contains("# TYPE drover_cycle_failures_total counter")
    );

    let before = scrape(serve.http);
    let rack = |page: &Exposition, name: &str| page.value(name, &[("pool", "rack")]);
    let stopped = |page: &Exposition, reason: &str| {
        page.value(
            "drover_pool_stopped",
            &[("pool", "rack"), ("reason", reason)],
        )
    };
    let requests =
        |page: &Exposition, phase: &str| page.value("drover_requests", &[("phase", phase)]);
    let info = [("pool", "rack"), ("kind", "static"), ("site", "office")];
    assert_eq!(before.value("drover_pool_info", &info), Some(1.0));
    assert_eq!(stopped(&before, "frozen"), Some(0.0));
    assert_eq!(requests(&before, "pending"), Some(0.0));
    assert_eq!(rack(&before, "drover_pool_coming_nodes"), Some(0.0));
    assert!(before.value("drover_cycle_seconds_count", &[]) >= Some(1.0));
    assert_eq!(before.value("drover_cycle_failures_total", &[]), Some(0.0));
    assert!(
        before.of("drover_aws_requests_total").is_empty(),
        "there is no pool of AWS"
    );

    serve.cli(&["freeze", "rack", "--reason", "a new switch"]);
    serve.cli(&[
        "requests", "create", "--name", "job", "--gpus", "64", "--for", "1h",
    ]);
    let after = serve.until("the freeze and the request", |page| {
        stopped(page, "frozen") == Some(1.0) && requests(page, "pending") == Some(1.0)
    });
    assert_eq!(
        after.value("drover_fleet_frozen", &[]),
        Some(0.0),
        "only the pool is"
    );
    assert_eq!(
        after.value("drover_alarms", &[("kind", "frozen")]),
        Some(1.0)
    );
    assert_eq!(
        after.value("drover_request_units", &[("state", "missing")]),
        Some(64.0)
    );
    let created = [
        ("about", "request"),
        ("event", "created"),
        ("severity", "info"),
    ];
    assert_eq!(after.value("drover_events_total", &created), Some(1.0));
    let commits =
        |page: &Exposition| page.value("drover_store_commits_total", &[("outcome", "done")]);
    assert!(commits(&after) > commits(&before));

    serve.cli(&["thaw", "rack"]);
    serve.cli(&["requests", "cancel", "job"]);
    serve.until("the thaw and the end", |page| {
        stopped(page, "frozen") == Some(0.0) && requests(page, "cancelled") == Some(1.0)
    });
}

#[test]
fn an_address_that_is_taken_fails_the_start_and_names_the_key() {
    let home = tempfile::tempdir().expect("directory");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let http = taken.local_addr().expect("bound").to_string();
    let output = drover(home.path())
        .args(["serve", "--config"])
        .arg(config(home.path(), &http))
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let wanted = format!("[server] http: cannot listen on {http} (write another address");
    assert!(said.contains(&wanted) && said.contains("in use"), "{said}");
    assert!(
        !home.path().join("state").exists(),
        "nothing was done before"
    );
}

#[test]
fn an_address_that_is_none_is_refused_with_its_line() {
    let home = tempfile::tempdir().expect("directory");
    let path = config(home.path(), "localhost");
    for verb in ["serve", "check-config"] {
        let output = drover(home.path())
            .args([verb, "--config"])
            .arg(&path)
            .output()
            .expect("runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{verb}: {said}");
        assert!(
            said.contains("drover.toml:3: server.http \"localhost\" is no address with a port"),
            "{verb}: {said}"
        );
    }
}
