//! `drover events`: what happened, and with `--follow` what happens. Called by `cli`; talks proto only.

use super::exit::CliError;
use super::output::{
    Cell, Column, Format, Out, Tabled, Tone, json_line, say, table, text, write_out, yaml,
};
use super::{Globals, connect, duration};
use drover_proto::v1;
use serde::Serialize;
use std::time::Duration;
use tokio_stream::StreamExt as _;

/// What happened.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Go on with what happens; with `-o json` one object a line.
    #[arg(short, long)]
    follow: bool,
    /// Only about this node, pool or request.
    #[arg(long, default_value = "")]
    subject: String,
    /// At most this many past ones.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Only later than this sequence number.
    #[arg(long, default_value_t = 0)]
    after_seq: u64,
}

/// One event.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct EventView {
    pub seq: u64,
    pub at_unix_ms: u64,
    pub kind: String,
    pub subject: Option<String>,
    pub what: String,
    pub message: String,
    pub severity: String,
}

impl From<v1::Event> for EventView {
    fn from(e: v1::Event) -> Self {
        Self {
            seq: e.seq,
            at_unix_ms: e.at_unix_ms,
            kind: e.kind,
            subject: text(e.subject),
            what: e.what,
            message: e.message,
            severity: e.severity,
        }
    }
}

impl EventView {
    fn tone(&self) -> Tone {
        match self.severity.as_str() {
            "alarm" => Tone::Bad,
            "warning" => Tone::Busy,
            _ => Tone::Plain,
        }
    }
}

impl Tabled for EventView {
    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::wide("SEQ", |e, _| e.seq.into()),
            Column::new("TIME", |e, _| duration::moment(e.at_unix_ms).into()),
            Column::new("SEVERITY", |e, _| Cell::toned(e.severity.clone(), e.tone())),
            Column::new("KIND", |e, _| (&e.kind).into()),
            Column::new("SUBJECT", |e, _| (&e.subject).into()),
            Column::new("WHAT", |e, _| (&e.what).into()),
            Column::new("MESSAGE", |e, _| (&e.message).into()),
        ]
    }
}

/// Runs the verb.
///
/// # Errors
/// What the coordinator refused, or that none answers (while following only the first time).
pub async fn run(globals: &Globals, out: Out, args: Args) -> Result<(), CliError> {
    let mut admin = connect::admin(globals).await?;
    let mut after_seq = args.after_seq;
    let mut known = false;
    let mut follower = Follower { out, headed: false };
    loop {
        let ask = admin.ask(v1::EventsRequest {
            follow: args.follow,
            after_seq,
            subject: args.subject.clone(),
            limit: args.limit,
        });
        let ended = match admin.client.events(ask).await {
            Ok(reply) => {
                known = true;
                let mut stream = reply.into_inner();
                if !args.follow {
                    let mut events = Vec::new();
                    while let Some(event) = stream.next().await {
                        events.push(EventView::from(event?));
                    }
                    return out.list(&events);
                }
                loop {
                    match stream.next().await {
                        Some(Ok(event)) => {
                            after_seq = event.seq;
                            follower.show(event.into())?;
                        }
                        Some(Err(status)) => break CliError::from(status),
                        None => {
                            break CliError::Unreachable(
                                "the coordinator ended the stream".to_owned(),
                            );
                        }
                    }
                }
            }
            Err(status) => CliError::from(status),
        };
        match ended {
            CliError::Unreachable(why) if known => {
                say(&format!("{why}; asking again"));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            other => return Err(other),
        }
    }
}

/// Writes events one by one as they come.
struct Follower {
    out: Out,
    headed: bool,
}

impl Follower {
    fn show(&mut self, event: EventView) -> Result<(), CliError> {
        let text = match self.out.format {
            Format::Json => json_line(&event)?,
            Format::Yaml => format!("---\n{}", yaml(&event)?),
            format => {
                // Widths cannot be known ahead: the headers stand once, columns follow their own event.
                let text = table(&[event], format == Format::Wide, self.out.colour, 0);
                let lines = if self.headed { 1 } else { 0 };
                self.headed = true;
                text.lines().skip(lines).map(|l| format!("{l}\n")).collect()
            }
        };
        write_out(text.as_bytes())
    }
}
