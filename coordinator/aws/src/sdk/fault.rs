//! From the SDK's errors to [`AwsError`].
//!
//! Used by `read` and `mutate`. It loses nothing: a reply that is no AWS reply keeps its status and its
//! beginning, and is named for what it is.

use std::error::Error;

use aws_sdk_ec2::config::http::HttpResponse;
use aws_sdk_ec2::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_sts::operation::assume_role::AssumeRoleError;

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
            no_credentials(call, region, &error).unwrap_or_else(|| {
                let text = causes(&error);
                let nowhere = text.contains("dns error");
                // Without a connection nothing was sent; after one, nobody knows.
                let unsent = nowhere || text.contains("Connection refused") || failure.is_user();
                let text = if nowhere {
                    format!(
                        "its address is not known (is there a region of this name?): {}",
                        words(&error)
                    )
                } else {
                    words(&error)
                };
                unreported(FailureKind::Transient, text, !unsent)
            })
        }
        SdkError::ConstructionFailure(_) => no_credentials(call, region, &error)
            .unwrap_or_else(|| unreported(FailureKind::Config, words(&error), false)),
        _ => unreported(FailureKind::Transient, words(&error), true),
    }
}

/// A reply that AWS sent and that lacks what AWS promises.
pub(super) fn incomplete(call: Call, region: &Region, what: String) -> AwsError {
    AwsError::unreported(call, region, FailureKind::UnparsableReply, what, true)
}

/// What it means when the call was not sent for want of credentials; `None` when that is not the trouble.
fn no_credentials(call: Call, region: &Region, error: &(dyn Error + 'static)) -> Option<AwsError> {
    let text = causes(error);
    if !text.contains("credential") && !text.contains("loading an identity") {
        return None;
    }
    let assumed = chain(error)
        .find_map(|cause| cause.downcast_ref::<SdkError<AssumeRoleError, HttpResponse>>());
    let mut fault = match (assumed, region.role()) {
        (Some(SdkError::ServiceError(refused)), Some(role)) => {
            let (code, words) = (refused.err().code(), refused.err().message());
            let text = format!(
                "the role {role} cannot be assumed: {}",
                words.unwrap_or("AWS gives no words")
            );
            AwsError::reported(call, region, 400, code, &text)
        }
        // STS did not answer: that says nothing about the credentials.
        (Some(_), Some(role)) => {
            let text = format!("the role {role} cannot be assumed now: {}", words(error));
            AwsError::unreported(call, region, FailureKind::Transient, text, false)
        }
        _ if text.contains("timed out") => {
            let text = format!("no credentials came in time: {}", words(error));
            AwsError::unreported(call, region, FailureKind::Transient, text, false)
        }
        _ => AwsError::reported(call, region, 400, Some("NoCredentials"), &words(error)),
    };
    fault.may_have_applied = false;
    Some(fault)
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |cause: &&'a (dyn Error + 'static)| {
        (*cause).source()
    })
}

/// For people: each cause once, without what the SDK adds for its own developers.
fn words(error: &(dyn Error + 'static)) -> String {
    let mut said: Vec<String> = chain(error).map(ToString::to_string).collect();
    said.dedup();
    said.join(": ")
}

/// For a look at what it is; too long for people.
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
