//! Key of each record. Keys are paths; a prefix lists a key space.

/// Enrolled nodes.
pub const NODE: &str = "/node/";
/// Orders, by node.
pub const ORDER: &str = "/order/";
/// Drains under way, by node: at most one each.
pub const DRAIN: &str = "/drain/";
/// Requests, by name.
pub const REQUEST: &str = "/request/";
/// Launches in flight, by id.
pub const LAUNCH: &str = "/launch/";
/// Capacity memory, by offering.
pub const MEMORY: &str = "/memory/";
/// Idle-since, by node.
pub const IDLE: &str = "/idle/";
/// Run-time settings of pools, by name.
pub const POOL: &str = "/pool/";
/// Adoptions of groups, by pool.
pub const ADOPTION: &str = "/adoption/";
/// Freezes, by pool; the fleet's is `/freeze/*`.
pub const FREEZE: &str = "/freeze/";
/// What clouds told, by instance (or node) and kind.
pub const NOTICE: &str = "/notice/";
/// Lifecycle hooks in which instances wait, by instance and hook.
pub const HOOK: &str = "/hook/";
/// Acts that wait for a person, by id.
pub const APPROVAL: &str = "/approval/";
/// The breaker's counts.
pub const BREAKER: &str = "/breaker/";
/// Join tokens, by id.
pub const TOKEN: &str = "/token/";
/// First uses of instance identity documents, by instance.
pub const CLAIM: &str = "/claim/";
/// Revoked certificates, by serial.
pub const REVOKED: &str = "/revoked/";
/// Admin identities, by name.
pub const ADMIN: &str = "/admin/";
/// The CA.
pub const CA: &str = "/ca";
/// Audit log, by zero-padded sequence number.
pub const AUDIT: &str = "/audit/";
/// Events, by zero-padded sequence number; a bounded tail.
pub const EVENT: &str = "/event/";

/// Groups that discovery found, by region and role.
pub const DISCOVERED: &str = "/discovered/";

/// What the fleet has learnt from its own work.
pub const LEARNT: &str = "/learnt";

/// Since when gangs of schedulers hold partial capacity.
pub const HOLDS: &str = "/holds";

/// When a cycle last ran, at most a minute old: how long nobody looked, after a start.
pub const ALIVE: &str = "/alive";

/// Fence that the store had when it was restored from a backup; absent when it never was. Launches of older fences are
/// never reaped.
pub const RESTORED: &str = "/restored";

/// The file that this store is kept in, by what a copy does not share; absent before the first start of this release and
/// after a restore.
pub const HOME: &str = "/home";

/// Key of a numbered record, so that keys order as numbers do.
#[must_use]
pub fn numbered(prefix: &str, seq: u64) -> String {
    format!("{prefix}{seq:020}")
}

/// Key of a named record.
#[must_use]
pub fn named(prefix: &str, name: &str) -> String {
    format!("{prefix}{name}")
}
