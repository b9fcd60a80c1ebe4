//! Tests of the drain machine.
