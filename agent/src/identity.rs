//! Who this node is: key, certificate and the pinned CA.

pub mod token;
