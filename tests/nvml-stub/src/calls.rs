//! What happens at each call before its value is looked up: script, log, hang, crash, delay, code. Used by `system`
//! and `device`.

use std::sync::Arc;
use std::time::Duration;

use crate::abi::{DRIVER_NOT_LOADED, Device, INVALID_ARGUMENT, UNINITIALIZED};
use crate::script::{Card, FullOutcome, Loaded, Outcome, Outcomes};
use crate::world;

/// A scripted value, empty when the script says nothing about the call.
pub type Scripted = FullOutcome;

/// Starts a call that is about no GPU.
pub fn system(call: &str) -> Result<(Arc<Loaded>, Scripted), u32> {
    let (script, inits) = world::with(|world| (world.script(), world.inits));
    let script = script.ok_or(DRIVER_NOT_LOADED)?;
    world::count(&script, call);
    if inits == 0 {
        return Err(UNINITIALIZED);
    }
    let scripted = settle(find(&script.script.calls, call))?;
    Ok((script, scripted))
}

/// Starts a call about one GPU.
pub fn device(call: &str, device: Device) -> Result<(Arc<Loaded>, Card, Scripted), u32> {
    let index = (device as usize).checked_sub(1).ok_or(INVALID_ARGUMENT)?;
    device_at(call, index)
}

/// Starts a call about the GPU of an index.
pub fn device_at(call: &str, index: usize) -> Result<(Arc<Loaded>, Card, Scripted), u32> {
    let (script, inits) = world::with(|world| (world.script(), world.inits));
    let script = script.ok_or(DRIVER_NOT_LOADED)?;
    world::count(&script, &format!("{call} {index}"));
    if inits == 0 {
        return Err(UNINITIALIZED);
    }
    let card = script.cards.get(index).cloned().ok_or(INVALID_ARGUMENT)?;
    let scripted = match find(&card.spec.calls, call).or_else(|| find(&script.script.calls, call)) {
        Some(outcome) => settle(Some(outcome))?,
        None => match card.spec.profile.code(call) {
            0 => Scripted::default(),
            code => return Err(code),
        },
    };
    Ok((script, card, scripted))
}

/// The outcome of `call`, by its full name, else without its version.
pub fn find<'a>(outcomes: &'a Outcomes, call: &str) -> Option<&'a Outcome> {
    outcomes.get(call).or_else(|| {
        let (plain, version) = call.rsplit_once("_v")?;
        version.parse::<u32>().ok()?;
        outcomes.get(plain)
    })
}

/// Hangs, crashes or waits as told; a code other than 0 is the error.
pub fn settle(outcome: Option<&Outcome>) -> Result<Scripted, u32> {
    let scripted = match outcome {
        None => return Ok(Scripted::default()),
        Some(Outcome::Value(value)) => Scripted {
            value: Some(*value),
            ..Scripted::default()
        },
        Some(Outcome::Word(word)) => match word.as_str() {
            "hang" => loop {
                std::thread::sleep(Duration::from_secs(3600));
            },
            "crash" => std::process::abort(),
            text => Scripted {
                text: Some(text.to_owned()),
                ..Scripted::default()
            },
        },
        Some(Outcome::Full(full)) => full.clone(),
    };
    if let Some(delay) = scripted.delay_ms {
        std::thread::sleep(Duration::from_millis(delay));
    }
    match scripted.code {
        Some(code) if code != 0 => Err(code),
        _ => Ok(scripted),
    }
}
