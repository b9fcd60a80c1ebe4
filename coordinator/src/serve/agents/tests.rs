//! Tests over real TLS.
