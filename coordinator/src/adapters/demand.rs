//! Where demand comes from: one adapter per source.

pub mod requests;
