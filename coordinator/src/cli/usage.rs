//! What clap says of a command line that makes no sense, where its own words do not help: negative values, and numbers
//! that are none. Called by main; asks nobody.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;
use std::num::{IntErrorKind, ParseIntError};

/// The same error, with what to do. `words` are those of the command line.
#[must_use]
pub fn explained(error: clap::Error, words: &[String], root: fn() -> clap::Command) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let arg = text(ContextKind::InvalidArg);
    let told = match error.kind() {
        ErrorKind::UnknownArgument => arg.and_then(|arg| negative(&arg, words)),
        ErrorKind::ValueValidation => {
            let cause = error.source().and_then(|cause| cause.downcast_ref());
            let value = text(ContextKind::InvalidValue);
            arg.zip(value)
                .and_then(|(arg, value)| number(&arg, &value, cause?))
        }
        _ => None,
    };
    match told {
        Some(told) => root().error(error.kind(), told),
        None => error,
    }
}

/// "-1" after an option was meant as its value.
fn negative(arg: &str, words: &[String]) -> Option<String> {
    let digit = arg
        .strip_prefix('-')?
        .starts_with(|c: char| c.is_ascii_digit());
    let at = words
        .iter()
        .position(|word| digit && word.starts_with(arg))?;
    let (value, option) = (&words[at], words.get(at.checked_sub(1)?)?);
    let named = option.starts_with("--") && !option.contains('=');
    named.then(|| format!("{value:?} is no value of {option}: it cannot be negative"))
}

/// What is no whole number.
fn number(arg: &str, value: &str, cause: &ParseIntError) -> Option<String> {
    let why = match cause.kind() {
        IntErrorKind::PosOverflow => "is too large",
        IntErrorKind::Empty => "is empty: write a whole number, like 4",
        IntErrorKind::InvalidDigit if value.starts_with('-') => "cannot be negative",
        IntErrorKind::InvalidDigit => "is no whole number: write one like 4",
        _ => return None,
    };
    Some(format!("invalid value {value:?} for {arg}: it {why}"))
}
