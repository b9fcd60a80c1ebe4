//! The AWS calls that Drover makes, behind one trait in plain types.
//!
//! Called by the coordinator's `asg` adapter, which is generic over [`AwsApi`]. It lives in a crate of its
//! own because the EC2 SDK takes minutes and gigabytes to compile. It must not decide anything, name a type
//! of Drover's other crates, or let a type of the SDK out.

mod api;
mod failure;
mod ids;
mod sdk;
mod shapes;

pub use api::AwsApi;
pub use failure::{AwsError, Call, Classified, FailureKind, QuotaLimit, classify};
pub use ids::{ClientToken, GroupName, InstanceId, Region};
pub use sdk::{Credentials, Endpoints, SdkAws, SdkSettings};
pub use shapes::{
    Activities, Activity, ActivityStatus, Gpu, Group, GroupTemplate, Instance, InstanceState,
    InstanceTypeFacts, LaunchAsk, LaunchPlace, LaunchRefusal, LaunchReply, Launched, Market,
    Member, MemberState, MixedPolicy, Override, TemplateFacts, TemplateRef,
};
