//! The AWS calls that Drover makes, behind one trait in plain types.
//!
//! Called by the coordinator's `asg` adapter, which is generic over [`AwsApi`]. It lives in a crate of its
//! own because the EC2 SDK takes minutes and gigabytes to compile. It must not decide anything, name a type
//! of Drover's other crates, or let a type of the SDK out.

mod api;
mod budget;
mod budgeted;
mod events;
mod failure;
mod ids;
mod offers;
mod permissions;
#[cfg(feature = "sdk")]
mod sdk;
mod shapes;
mod survey;

pub use api::AwsApi;
pub use budget::{
    BucketFigures, Budget, BudgetClock, BudgetSettings, CallFigures, Limit, TokioClock, Toll,
    within,
};
pub use budgeted::Budgeted;
pub use events::AwsEvents;
pub use failure::{Api, AwsError, Call, Classified, FailureKind, QuotaLimit, classify};
pub use ids::{ClientToken, GroupName, InstanceId, Region, ReservationId};
pub use offers::AwsOffers;
pub use permissions::{Grant, Narrow, Need, grants};
#[cfg(feature = "sdk")]
pub use sdk::{Credentials, Endpoints, SdkAws, SdkSettings};
pub use shapes::{
    Activities, Activity, ActivityStatus, DryRun, Gpu, Group, GroupTemplate, HookAnswer,
    HookDefault, HookOn, Instance, InstanceState, InstanceTypeFacts, LaunchAsk, LaunchPlace,
    LaunchRefusal, LaunchReply, Launched, LifecycleHook, Market, Member, MemberState, MixedPolicy,
    Override, Permission, PolicyQuestion, QueueMessage, QuotaFact, Refresh, Reservation,
    ReservationKind, ReservationUse, ScalingPolicy, ScheduledAction, SpotPrice, TemplateFacts,
    TemplateRef, WarmPool,
};
pub use survey::{AwsMend, AwsSurvey};
