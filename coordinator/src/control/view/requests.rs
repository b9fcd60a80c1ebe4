//! Requests and demand as they are shown.

use super::AssignmentView;
use crate::records::RequestRecord;
use drover_core::model::Class;

/// How a request is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestShown {
    /// Nothing yet.
    Pending,
    /// Some units on ready nodes.
    Partial,
    /// All of them.
    Served,
    /// Its time is over.
    Ended,
    /// Taken back.
    Cancelled,
    /// No pool can ever serve it.
    Impossible,
}

impl RequestShown {
    /// As in the admin service.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Partial => "partial",
            Self::Served => "served",
            Self::Ended => "ended",
            Self::Cancelled => "cancelled",
            Self::Impossible => "impossible",
        }
    }
}

/// A request.
#[derive(Debug, Clone)]
pub struct RequestView {
    /// As stored.
    pub record: RequestRecord,
    /// As shown.
    pub shown: RequestShown,
    /// Where its units are.
    pub assignments: Vec<AssignmentView>,
    /// Units on ready nodes.
    pub units_ready: u32,
    /// Units on nodes that are coming or joining.
    pub units_coming: u32,
    /// Units on nodes that were ready and are not now.
    pub units_unavailable: u32,
    /// Units on none.
    pub units_missing: u32,
    /// Why it is as it is (I9).
    pub reasons: Vec<String>,
}

/// One class of demand in the last cycle.
#[derive(Debug, Clone)]
pub struct DemandView {
    /// Name of its source, or of its request.
    pub source: String,
    /// The class.
    pub class: Class,
    /// Members, at most ten.
    pub members: Vec<String>,
    /// Units on nodes that exist, come or are asked for.
    pub placed: u32,
    /// Units without.
    pub unplaced: u32,
    /// Why.
    pub reasons: Vec<String>,
}
