//! `drover requests wait`: asks again and again until all nodes of a request are ready or it cannot be. A bar on a
//! terminal, a line per change elsewhere, both on stderr. The coordinator may be away for a while in between.

use super::view::RequestView;
use crate::cli::connect::Admin;
use crate::cli::duration;
use crate::cli::exit::{CliError, printable};
use crate::cli::output::{Out, say};
use drover_proto::v1;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;
use tokio::time::Instant;

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(500);

/// What one answer means for the wait.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Ready,
    Never(String),
    Wait,
}

fn verdict(request: &RequestView) -> Verdict {
    let why = || {
        let reasons = request.reasons.join("; ");
        if reasons.is_empty() {
            "no reason is given".to_owned()
        } else {
            reasons
        }
    };
    let name = &request.name;
    match request.state.as_str() {
        "served" if request.assignments.iter().all(|a| a.ready) => Verdict::Ready,
        "impossible" => Verdict::Never(format!("request {name} can never be served: {}", why())),
        "cancelled" => Verdict::Never(format!("request {name} was cancelled: {}", why())),
        "ended" => Verdict::Never(format!("request {name} has ended: {}", why())),
        _ => Verdict::Wait,
    }
}

/// Waits. Prints the request when it is served.
///
/// # Errors
/// Failed with the reason when it cannot be or `timeout_ms` passed; unreachable when the first question finds nobody.
pub async fn run(
    mut admin: Admin,
    out: Out,
    name: &str,
    timeout_ms: Option<u64>,
) -> Result<(), CliError> {
    let deadline = timeout_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
    let mut progress = Progress::new(out.progress);
    let mut last: Option<RequestView> = None;
    loop {
        let ask = admin.ask(v1::GetRequestRequest {
            name: name.to_owned(),
        });
        let answer = match deadline {
            Some(deadline) => {
                match tokio::time::timeout_at(deadline, admin.client.get_request(ask)).await {
                    Ok(answer) => answer,
                    Err(_) => return Err(late(&progress, name, timeout_ms, last.as_ref())),
                }
            }
            None => admin.client.get_request(ask).await,
        };
        match answer.map_err(CliError::from) {
            Ok(reply) => {
                let request = RequestView::from(reply.into_inner());
                progress.show(&request);
                match verdict(&request) {
                    Verdict::Ready => {
                        progress.end();
                        return out.one(&request);
                    }
                    Verdict::Never(why) => {
                        progress.end();
                        return Err(CliError::Failed(why));
                    }
                    Verdict::Wait => last = Some(request),
                }
            }
            Err(error @ CliError::Unreachable(_)) if last.is_some() => progress.away(&error),
            Err(error) => {
                progress.end();
                return Err(error);
            }
        }
        let next = Instant::now() + PAUSE;
        if deadline.is_some_and(|deadline| deadline <= next) {
            return Err(late(&progress, name, timeout_ms, last.as_ref()));
        }
        tokio::time::sleep_until(next).await;
    }
}

fn late(
    progress: &Progress,
    name: &str,
    timeout_ms: Option<u64>,
    last: Option<&RequestView>,
) -> CliError {
    progress.end();
    let so_far = last.map_or_else(
        || "no answer came".to_owned(),
        |r| {
            let why = r.reasons.join("; ");
            let why = if why.is_empty() {
                String::new()
            } else {
                format!(": {why}")
            };
            format!("{}{why}", r.progress())
        },
    );
    CliError::Failed(format!(
        "request {name} was not served within {}: {so_far}",
        duration::exact(timeout_ms.unwrap_or_default())
    ))
}

/// The bar, or the lines.
struct Progress {
    bar: Option<ProgressBar>,
    said: String,
}

impl Progress {
    fn new(bar: bool) -> Self {
        let bar = bar.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template(
                "{prefix} [{bar:32}] {pos}/{len} units ready, {msg} {elapsed}",
            ) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Self {
            bar,
            said: String::new(),
        }
    }

    fn show(&mut self, request: &RequestView) {
        // A served one whose node was taken away says why; one that is only held for a while need not.
        let waits = request.state != "served" || request.units_unavailable > 0;
        let reason = match request.reasons.first() {
            Some(reason) if waits => format!(": {}", printable(reason)),
            _ => String::new(),
        };
        if let Some(bar) = &self.bar {
            bar.set_prefix(request.name.clone());
            bar.set_length(request.units.into());
            bar.set_position(request.units_ready.into());
            let away = match request.units_unavailable {
                0 => String::new(),
                count => format!(", {count} unavailable"),
            };
            bar.set_message(format!("{} coming{away}{reason}", request.units_coming));
        } else {
            self.line(format!("{}: {}{reason}", request.name, request.progress()));
        }
    }

    fn away(&mut self, error: &CliError) {
        match &self.bar {
            Some(bar) => bar.set_message(format!("{error}; asking again")),
            None => self.line(format!("{error}; asking again")),
        }
    }

    fn line(&mut self, line: String) {
        if line != self.said {
            say(&line);
            self.said = line;
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(state: &str, ready: &[bool]) -> RequestView {
        v1::Request {
            spec: Some(v1::RequestSpec {
                name: "r".to_owned(),
                ..Default::default()
            }),
            state: state.to_owned(),
            reasons: vec!["no pool offers a p9".to_owned()],
            assignments: ready
                .iter()
                .map(|ready| v1::Assignment {
                    ready: *ready,
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        }
        .into()
    }

    #[test]
    fn only_ready_nodes_end_the_wait_well() {
        for (state, ready, want) in [
            ("served", &[true, true][..], Some(true)),
            ("served", &[true, false], None),
            ("pending", &[true], None),
            ("partial", &[], None),
            ("impossible", &[], Some(false)),
            ("cancelled", &[true], Some(false)),
            ("ended", &[], Some(false)),
        ] {
            let got = verdict(&request(state, ready));
            match want {
                Some(true) => assert_eq!(got, Verdict::Ready, "{state}"),
                None => assert_eq!(got, Verdict::Wait, "{state}"),
                Some(false) => {
                    let Verdict::Never(why) = got else {
                        panic!("{state}: {got:?}")
                    };
                    assert!(why.contains("no pool offers a p9"), "{why}");
                }
            }
        }
    }
}
