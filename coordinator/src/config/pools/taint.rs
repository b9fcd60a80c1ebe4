//! How a taint is written: `VALUE:EFFECT`, as Kubernetes and the group's tags have it.
//!
//! Called by `terms` for the config, and by the `asg` adapter for tags, so that one text means one taint in both.

use drover_config::kind;
use toml::de::DeValue;

/// What to write instead of what is no taint.
pub(super) const FIX: &str =
    "write { key = \"VALUE:NoSchedule\" }, or NoExecute; a bare \"VALUE\" is NoSchedule";

/// What a taint does to work that does not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It keeps it away: NoSchedule and NoExecute, which Drover treats alike.
    KeepsAway,
    /// PreferNoSchedule: work may run there all the same, so it counts as no taint.
    Wish,
}

/// `VALUE:EFFECT` taken apart; absent where no known effect follows the last colon. The value may be empty.
pub(crate) fn with_effect(text: &str) -> Option<(&str, Effect)> {
    let (value, effect) = text.rsplit_once(':')?;
    match effect {
        "NoSchedule" | "NoExecute" => Some((value, Effect::KeepsAway)),
        "PreferNoSchedule" => Some((value, Effect::Wish)),
        _ => None,
    }
}

/// A taint of the config: a bare value keeps work away. `None`: it keeps none away.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(value: &DeValue<'_>) -> Result<Option<String>, String> {
    let text = value.as_str().ok_or_else(|| kind(value))?;
    match with_effect(text) {
        Some((value, Effect::KeepsAway)) => Ok(Some(value.to_owned())),
        Some((_, Effect::Wish)) => Ok(None),
        None => match text.rsplit_once(':') {
            Some((_, effect)) => Err(format!("{effect:?} is no effect of a taint")),
            None => Ok(Some(text.to_owned())),
        },
    }
}
