//! Layer 0: plain data that the planner reads and writes, newtyped ids and quantities. Nothing here decides.

pub mod anticipate;
pub mod away;
pub mod demand;
pub mod ids;
pub mod input;
pub mod learnt;
pub mod node;
pub mod plan;
pub mod pool;
pub mod quantities;
pub mod reason;
pub mod rules_of_place;

pub use anticipate::{Anticipate, Hold};
pub use away::Away;
pub use demand::{Class, Constraints, Gang, Locality, Source};
pub use ids::{
    DrainId, HoldId, InstanceId, LaunchId, NodeId, OfferingId, PoolId, RequestName, ReservationId,
    SiteId, TokenId,
};
pub use input::{Budget, Headroom, LaunchInFlight, MemoryEntry, PLAN_VERSION, PlanInput, Policy};
pub use learnt::{Asked, AskedKind, Demanded, Learnt, Lives, Span};
pub use node::{Busy, Cordon, DrainInfo, Lifecycle, NodeInput, Reserved, Running};
pub use plan::{
    Action, ClassOutcome, Dropped, Emptying, NodeOutcome, Plan, Planned, PoolOutcome, Report, Run,
    Target,
};
pub use pool::{
    Disruption, FailureKind, Market, Mode, Offering, PoolInput, PoolKind, Quota, ReservedRoom,
    Steering, Stop,
};
pub use quantities::{Bytes, MicroUsd, MilliCpu, Millis, Resources, UnixMs};
pub use reason::Reason;
pub use rules_of_place::{
    HostPort, Near, Operator, Preferred, PreferredNear, Requirement, Selector, Spread,
};

/// What a plan file leaves out: a field that says nothing.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
