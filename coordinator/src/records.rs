//! Layer 3: what is durable, as serde structs, one key space each. Read and written through [`crate::ports::store`].
//!
//! Durable, because nobody else can say it again: enrolled nodes (`/node/`), orders and drains (`/order/`,
//! `/drain/`), requests with their assignments (`/request/`), launches in flight (`/launch/`), capacity memory
//! (`/memory/`), idle-since times (`/idle/`), pool settings changed at run time (`/pool/`), adoptions of groups
//! (`/adoption/`), freezes (`/freeze/`),
//! what clouds told of nodes and the hooks in which instances wait (`/notice/`, `/hook/`),
//! approvals and the breaker's counts (`/approval/`, `/breaker/`), join tokens (`/token/`), first uses of
//! instance identity documents (`/claim/`), revocations
//! (`/revoked/`), groups found by their tag (`/discovered/`), admin identities (`/admin/`), the CA's fingerprint (`/ca`), audit (`/audit/`), events (`/event/`, a
//! bounded tail).
//!
//! Rebuilt at start, because agents and providers say it again: facts, telemetry, workloads, conditions, instances,
//! offerings, prices, the plan.
//!
//! Every struct tolerates unknown fields and defaults new ones, so that a store is readable by the release before.

pub mod adoption;
pub mod discovered;
pub mod fleet;
pub mod identity;
pub mod keys;
pub mod notice;
pub mod order;
pub mod request;
pub mod wants;

pub use adoption::{AdoptionRecord, Decision, Sample, Tally};
pub use discovered::{DiscoveredGroup, DiscoveredRecord};
pub use fleet::{
    ApprovalRecord, AuditRecord, BreakerRecord, EventRecord, FreezeRecord, IdleRecord,
    LaunchRecord, LaunchState, MemoryRecord, PoolRecord, Severity, UnlikeRecord,
};
pub use identity::{
    AdminRecord, CaRecord, ClaimRecord, NodeRecord, ProvenInstance, QuarantineRecord,
    RevokedRecord, TokenRecord,
};
pub use notice::{
    HookOn, HookRecord, HookState, NoticeKind, NoticeRecord, Room, hook_key, notice_key,
};
pub use order::{DesiredState, DrainPolicy, DrainRecord, DrainStep, OrderRecord, Then};
pub use request::{
    AssignmentRecord, AssignmentTarget, REQUEST_LABEL, RequestRecord, RequestSpec, RequestState,
    SpreadWish,
};
