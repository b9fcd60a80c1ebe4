//! The stream behind `drover events`: past ones, then those to come. A follower that is too slow for the channel reads
//! what it missed from the tail: nothing is skipped while the tail holds it. Used by `serve/admin`.

use super::lines;
use crate::control::commands::Commands;
use crate::serve::convert::records;
use drover_proto::v1;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tonic::Status;

/// Events that wait for a client that reads slowly.
const WAITING: usize = 64;

/// All that was asked for.
pub async fn stream(
    commands: Commands,
    wish: v1::EventsRequest,
) -> BoxStream<'static, Result<v1::Event, Status>> {
    let limit = lines(wish.limit);
    // First listen, then read the past: what happens in between comes twice and is told once.
    let mut follow = commands.follow();
    let past = commands.events(wish.after_seq, &wish.subject, limit).await;
    if !wish.follow {
        let past: Vec<_> = past.iter().map(|event| Ok(records::event(event))).collect();
        return futures::stream::iter(past).boxed();
    }
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        let mut last = wish.after_seq;
        let mut behind = past;
        loop {
            for event in behind
                .drain(..)
                .filter(|event| event.seq > last)
                .collect::<Vec<_>>()
            {
                last = event.seq;
                if sender.send(Ok(records::event(&event))).await.is_err() {
                    return;
                }
            }
            let next = tokio::select! {
                next = follow.recv() => next,
                () = sender.closed() => return,
            };
            match next {
                Ok(event) if wish.subject.is_empty() || event.subject == wish.subject => {
                    behind.push(event)
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => {
                    behind = commands
                        .events(last, &wish.subject, super::LINES_MOST)
                        .await;
                }
                Err(RecvError::Closed) => return,
            }
        }
    });
    tokio_stream::wrappers::ReceiverStream::new(receiver).boxed()
}
