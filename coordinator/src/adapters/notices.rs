//! What clouds tell by themselves: queues of SQS that EventBridge and lifecycle hooks write to.
//!
//! Made by `app`; control asks [`Queues`] through its port.

pub mod parse;
mod sqs;

pub use sqs::{Queue, Queues};
