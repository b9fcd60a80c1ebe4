//! What people see while the demo runs: a live table on a terminal, else a line per event.

use super::admin::{Admin, number, text};
use std::cell::RefCell;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Where the story is told.
pub struct Screen {
    live: bool,
    events_to_stderr: bool,
    began: Instant,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    drawn: Option<Instant>,
    told: Vec<String>,
    seen: u64,
}

impl Screen {
    /// Live only on a terminal. With JSON on stdout, events go to stderr.
    pub fn new(headless: bool, json: bool) -> Self {
        Self {
            live: !headless && std::io::stderr().is_terminal(),
            events_to_stderr: json,
            began: Instant::now(),
            state: RefCell::default(),
        }
    }

    /// One line of the story.
    pub fn tell(&self, line: &str) {
        let stamped = format!("{:6.1}s  {line}", self.began.elapsed().as_secs_f64());
        if !self.live {
            if self.events_to_stderr {
                eprintln!("{stamped}");
            } else {
                println!("{stamped}");
            }
        }
        self.state.borrow_mut().told.push(stamped);
    }

    /// Shows how things stand, at most twice a second; and, headless, the coordinator's events since the last look.
    pub fn look(&self, admin: &Admin) {
        let mut state = self.state.borrow_mut();
        if state
            .drawn
            .is_some_and(|at| at.elapsed() < Duration::from_millis(500))
        {
            return;
        }
        state.drawn = Some(Instant::now());
        if self.live {
            draw(admin, &state.told, self.began);
            return;
        }
        let after = state.seen.to_string();
        let Ok(events) = admin.ask(&["events", "--after-seq", &after, "--limit", "1000"]) else {
            return;
        };
        drop(state);
        for event in events.as_array().into_iter().flatten() {
            // A hundred nodes say the same of themselves: the story is told by pools and requests.
            if text(event, "kind") != "node" || text(event, "severity") != "info" {
                self.tell(&format!(
                    "{} {}: {}",
                    text(event, "kind"),
                    text(event, "subject"),
                    text(event, "message")
                ));
            }
            let mut state = self.state.borrow_mut();
            state.seen = state.seen.max(number(event, "seq"));
        }
    }

    /// Leaves the live table.
    pub fn end(&self) {
        if self.live {
            for line in &self.state.borrow().told {
                eprintln!("{line}");
            }
        }
    }
}

fn draw(admin: &Admin, told: &[String], began: Instant) {
    let Ok(pools) = admin.ask(&["pools", "list"]) else {
        return;
    };
    let mut text_out = format!(
        "\x1b[2J\x1b[HDrover demo, {:.0} s\n\n",
        began.elapsed().as_secs_f64()
    );
    text_out += &format!(
        "{:<10} {:<8} {:>5} {:>5} {:>5} {:>8} {:>6}  reason\n",
        "pool", "kind", "nodes", "ready", "idle", "draining", "coming"
    );
    for pool in pools.as_array().into_iter().flatten() {
        let reason = pool
            .get("reasons")
            .and_then(|r| r.get(0))
            .and_then(|r| r.as_str())
            .unwrap_or_default();
        let n = |field| number(pool, field);
        text_out += &format!(
            "{:<10} {:<8} {:>5} {:>5} {:>5} {:>8} {:>6}  {}\n",
            text(pool, "name"),
            text(pool, "kind"),
            n("nodes"),
            n("ready"),
            n("idle"),
            n("draining"),
            n("coming"),
            reason.chars().take(60).collect::<String>(),
        );
    }
    text_out.push('\n');
    for line in told.iter().rev().take(12).rev() {
        text_out += line;
        text_out.push('\n');
    }
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text_out.as_bytes());
}
