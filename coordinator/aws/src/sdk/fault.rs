//! From the SDK's errors to [`AwsError`].
//!
//! Used by `read` and `mutate`. It loses nothing: a reply that is no AWS reply keeps its status and its
//! beginning, and is named for what it is.

use std::error::Error;

use aws_sdk_ec2::config::http::HttpResponse;
use aws_sdk_ec2::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};

use crate::{AwsError, Call, FailureKind, Region};

/// How much of an unreadable reply is kept, characters.
const KEEP_CHARS: usize = 300;

/// What the caller is to be told about `error`.
pub(super) fn fault<E>(call: Call, region: &Region, error: SdkError<E, HttpResponse>) -> AwsError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let unreported =
        |kind, message, applied| AwsError::unreported(call, region, kind, message, applied);
    match &error {
        SdkError::ServiceError(service) => match service.err().code() {
            Some(code) => {
                let status = service.raw().status().as_u16();
                AwsError::reported(
                    call,
                    region,
                    status,
                    Some(code),
                    service.err().message().unwrap_or_default(),
                )
            }
            None => unreported(
                FailureKind::UnparsableReply,
                unreadable(service.raw()),
                true,
            ),
        },
        SdkError::ResponseError(response) => unreported(
            FailureKind::UnparsableReply,
            unreadable(response.raw()),
            true,
        ),
        SdkError::TimeoutError(_) => unreported(
            FailureKind::Transient,
            "no reply within the time-out".to_owned(),
            true,
        ),
        SdkError::DispatchFailure(failure) => {
            let text = causes(&error);
            if text.contains("credentials") {
                let mut fault = AwsError::reported(call, region, 400, Some("NoCredentials"), &text);
                fault.may_have_applied = false;
                fault
            } else {
                // Without a connection nothing was sent; after one, nobody knows.
                let refused = text.contains("Connection refused")
                    || text.contains("dns error")
                    || failure.is_user();
                unreported(FailureKind::Transient, text, !refused)
            }
        }
        SdkError::ConstructionFailure(_) => {
            let text = causes(&error);
            if text.contains("credentials") {
                AwsError::reported(call, region, 400, Some("NoCredentials"), &text)
            } else {
                unreported(FailureKind::Config, text, false)
            }
        }
        _ => unreported(FailureKind::Transient, causes(&error), true),
    }
}

/// A reply that AWS sent and that lacks what AWS promises.
pub(super) fn incomplete(call: Call, region: &Region, what: String) -> AwsError {
    AwsError::unreported(call, region, FailureKind::UnparsableReply, what, true)
}

fn causes(error: &(dyn Error + 'static)) -> String {
    DisplayErrorContext(error).to_string()
}

fn unreadable(response: &HttpResponse) -> String {
    let body = response
        .body()
        .bytes()
        .map(String::from_utf8_lossy)
        .unwrap_or_default();
    let body = body.split_whitespace().collect::<Vec<_>>().join(" ");
    let start: String = body.chars().take(KEEP_CHARS).collect();
    format!(
        "HTTP {} with a reply that is not AWS's: {start}",
        response.status().as_u16()
    )
}
