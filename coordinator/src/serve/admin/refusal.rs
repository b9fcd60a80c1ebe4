//! Why a wish was refused, as a status whose text names the field and the fix. Used by `serve/admin`. What is broken
//! inside is logged with its cause and told without.

use crate::adapters::backup::BackupError;
use crate::control::commands::CommandError;
use crate::ports::store::CommitError;
use crate::serve::convert::requests::short;
use crate::serve::identities::IdentityError;
use crate::serve::tokens::TokenDeskError;
use tonic::Status;

/// "field: what is wrong".
pub fn named(field: &str, why: &str) -> Status {
    Status::invalid_argument(format!("{field}: {why}"))
}

/// A text from outside.
///
/// # Errors
/// It is longer than `most` bytes.
pub fn text(field: &'static str, text: &str, most: usize) -> Result<(), Status> {
    short(field, text, most).map_err(|bad| named(bad.0, &bad.1))
}

/// Of a command.
pub fn refuse(error: CommandError) -> Status {
    let told = error.to_string();
    match error {
        CommandError::NotFound { .. } => Status::not_found(told),
        CommandError::Ambiguous { .. } => {
            Status::failed_precondition(format!("{told}; say one of these ids"))
        }
        CommandError::Invalid { .. } => Status::invalid_argument(told),
        CommandError::Refused(_) => Status::failed_precondition(told),
        CommandError::Exists { .. } => Status::already_exists(told),
        CommandError::Busy => Status::aborted(told),
        CommandError::NoCycle => Status::unavailable(told),
        CommandError::Commit(source) => commit(source),
        CommandError::Read(source) => broken(&source, "the store cannot be read"),
    }
}

/// Of a token wish.
pub fn token(error: TokenDeskError) -> Status {
    let told = error.to_string();
    match error {
        TokenDeskError::Wish(_) => Status::invalid_argument(told),
        TokenDeskError::NotFound(_) => Status::not_found(told),
        TokenDeskError::Commit(source) => commit(source),
        TokenDeskError::Broken(_) | TokenDeskError::Read(_) => {
            broken(&error, "the token cannot be read")
        }
    }
}

/// Of a wish about certificates.
pub fn identity(error: IdentityError) -> Status {
    let told = error.to_string();
    match error {
        IdentityError::Csr(_) | IdentityError::Issue(_) => Status::invalid_argument(told),
        IdentityError::NotFound(_) => Status::not_found(told),
        IdentityError::NoClaim(_) => Status::failed_precondition(told),
        IdentityError::Commit(source) => commit(source),
        IdentityError::Broken(_) | IdentityError::Read(_) => {
            broken(&error, "the record cannot be read")
        }
    }
}

/// Of a backup.
pub fn sealing(error: BackupError) -> Status {
    match error {
        BackupError::Passphrase => Status::invalid_argument(format!("passphrase: {error}")),
        _ => broken(&error, "the backup cannot be made"),
    }
}

fn commit(error: CommitError) -> Status {
    match error {
        CommitError::Fenced { .. } => Status::unavailable(error.to_string()),
        CommitError::Conflict { .. } => {
            Status::aborted("it changed while it was being changed: try again")
        }
        CommitError::TooLarge(_) => Status::invalid_argument(error.to_string()),
        CommitError::Backend(_) => broken(&error, "the store cannot be written"),
    }
}

fn broken(error: &(dyn std::error::Error + 'static), told: &str) -> Status {
    tracing::error!(error, "{told}");
    Status::internal(format!("{told}; the coordinator's log says why"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Code;

    #[test]
    fn every_refusal_has_its_code_and_names_what_is_wrong() {
        let invalid = CommandError::Invalid {
            field: "max",
            message: "is below min 5".to_owned(),
        };
        let missing = CommandError::NotFound {
            kind: "pool",
            name: "rak".to_owned(),
        };
        let several = CommandError::Ambiguous {
            name: "web".to_owned(),
            ids: vec!["n1".to_owned(), "n2".to_owned()],
        };
        let backend = || CommitError::Backend(std::io::Error::other("disk /secret/path").into());
        for (error, code, needle) in [
            (invalid, Code::InvalidArgument, "max: is below min 5"),
            (missing, Code::NotFound, "rak"),
            (several, Code::FailedPrecondition, "n1, n2"),
            (CommandError::Busy, Code::Aborted, "try again"),
            (CommandError::NoCycle, Code::Unavailable, "cycle"),
            (
                CommandError::Commit(CommitError::Fenced {
                    mine: 1,
                    current: 2,
                }),
                Code::Unavailable,
                "no longer leads",
            ),
            (
                CommandError::Commit(backend()),
                Code::Internal,
                "log says why",
            ),
        ] {
            let status = refuse(error);
            assert_eq!(status.code(), code, "{status}");
            assert!(status.message().contains(needle), "{status}");
            assert!(!status.message().contains("/secret/path"), "{status}");
        }
    }
}
