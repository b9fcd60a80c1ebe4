//! Where the coordinator is and what the node proves itself with: `coordinator`, the keys of a token, `[join]`.
//!
//! A part of `build`. Reads the token file that is named.

use drover_config::{At, Section};

use super::choice;
use crate::config::{Address, Join};
use crate::identity::token::{CaHash, JoinToken};

pub(super) fn coordinator(root: &Section<'_>) -> Address {
    let fix = "write coordinator = \"https://HOST:7443\"";
    let at = root.required("coordinator", fix);
    let found = at.as_ref().and_then(|at| address(&at.value));
    if let (Some(at), None) = (&at, &found) {
        let message = "is no https:// address with a port";
        root.report(at.offset, "coordinator", message, fix);
    }
    // A placeholder stands for what was reported.
    found.unwrap_or(Address {
        host: String::new(),
        port: 0,
    })
}

/// "https://HOST:PORT", nothing behind it but one slash.
pub(in crate::config) fn address(text: &str) -> Option<Address> {
    let rest = text.strip_prefix("https://")?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = rest.rsplit_once(':')?;
    let port: u16 = port.parse().ok().filter(|port| *port != 0)?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:%".contains(c);
    (!host.is_empty() && host.chars().all(plain)).then(|| Address {
        host: host.to_owned(),
        port,
    })
}

pub(super) fn join_token(root: &Section<'_>) -> Option<JoinToken> {
    let fix = "paste the text that `drover tokens create` printed";
    let inline = root.text("join_token", fix);
    let file = root.text(
        "join_token_file",
        "write the path of the file with the token",
    );
    let (key, at, text) = match (inline, file) {
        (Some(_), Some(file)) => {
            let message = "stands beside join_token";
            root.report(
                file.offset,
                "join_token_file",
                message,
                "keep one of the two",
            );
            return None;
        }
        (Some(inline), None) => ("join_token", inline.offset, inline.value),
        (None, Some(At { value, offset })) => match std::fs::read_to_string(&value) {
            Ok(text) => ("join_token_file", offset, text),
            Err(error) => {
                // An enrolled node lives on without it: the file may have been taken away.
                if error.kind() != std::io::ErrorKind::NotFound {
                    let message = format!("cannot be read ({error})");
                    root.report(offset, "join_token_file", &message, "make it readable");
                }
                return None;
            }
        },
        (None, None) => return None,
    };
    match text.parse() {
        Ok(token) => Some(token),
        Err(error) => {
            root.report(at, key, &error.to_string(), fix);
            None
        }
    }
}

/// `[join]`, beside the keys of a token.
pub(super) fn join(root: &Section<'_>, section: &Section<'_>, token: Option<JoinToken>) -> Join {
    let by_instance = choice(
        section,
        "method",
        &[("token", false), ("instance-identity", true)],
        false,
    );
    let fix = "write the CA's SHA-256 as 64 hex digits: `drover serve` logs it, and every join token ends in it";
    let ca = section.text("ca_sha256", fix);
    let hash = ca.as_ref().map(|at| {
        let mut bytes = [0; 32];
        let read = hex::decode_to_slice(at.value.trim(), &mut bytes);
        if read.is_err() {
            section.report(at.offset, "ca_sha256", "is not 64 hex digits", fix);
        }
        CaHash(bytes)
    });
    match (by_instance, hash) {
        (false, None) => token.map_or(Join::Nothing, Join::Token),
        (false, Some(_)) => {
            let at = ca.map_or(section.offset(), |at| at.offset);
            let message =
                "stands without method = \"instance-identity\": a join token carries its own";
            section.report(at, "ca_sha256", message, "leave it out");
            Join::Nothing
        }
        (true, None) => {
            section.report(section.offset(), "ca_sha256", "is required", fix);
            Join::Nothing
        }
        (true, Some(ca)) => {
            for key in ["join_token", "join_token_file"] {
                if root.has(key) {
                    let message = format!("stands beside {key}");
                    section.report(section.offset(), "method", &message, "keep one of the two");
                }
            }
            Join::InstanceIdentity { ca }
        }
    }
}
