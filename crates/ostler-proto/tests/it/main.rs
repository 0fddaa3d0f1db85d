//! Integration tests of the wire protocol: recorded traffic, random traffic.

mod fixtures;
mod random;
mod recorded;
