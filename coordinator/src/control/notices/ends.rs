//! Ends that a provider has said ahead: the capacity block that an instance runs in is over at a known time.
//!
//! Called by the cycle with notices. The end becomes a notice once it is near, and is forgotten when the block is extended.

use super::super::cycle::{Control, CycleError, Round};
use super::super::tx::Tx;
use super::Word;
use crate::records::NoticeKind;
use drover_core::model::{Millis, UnixMs};

/// Told this much before new work is kept off, so that people can act.
const TOLD: Millis = Millis::minutes(60);

impl Control {
    pub(super) async fn hear_ends(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let mut tx = Tx::new();
        for node in round.fleet.iter().filter(|node| node.joined()) {
            let (Some(pool), Some(instance)) = (&node.pool, &node.instance_id) else {
                continue;
            };
            let Some(config) = self.config.pool(pool) else {
                continue;
            };
            let Some(reading) = round.readings.get(pool) else {
                continue;
            };
            let there = reading.instances.iter().find(|i| i.id == *instance);
            let Some(there) = there else { continue };
            let lead = config.notices.block_lead;
            let near = |ends: &UnixMs| round.now.after(lead).after(lead).after(TOLD) >= *ends;
            let told = node.notices.iter().any(|n| n.kind == NoticeKind::BlockEnd);
            match there.ends.filter(near) {
                None if !told => {}
                ends => self.hear(round, &mut tx, node, word(ends)),
            }
        }
        if !tx.is_empty() {
            self.commit(round, tx).await?;
            self.rejoin(round);
        }
        Ok(())
    }
}

/// Without an end: what was told does not hold any more.
fn word(ends: Option<UnixMs>) -> Word {
    let message = if ends.is_some() {
        "AWS begins to end what runs in its capacity block 30 min before the block's end"
    } else {
        "its capacity block was extended"
    };
    Word {
        kind: NoticeKind::BlockEnd,
        event: String::new(),
        ends,
        withdrawn: ends.is_none(),
        by: "the group's reading".to_owned(),
        message: message.to_owned(),
    }
}
