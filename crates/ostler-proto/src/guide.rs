//! The protocol in prose, for authors of engines, hosts, and tools in between.
//!
//! Two levels are described: *old* is CLI 2.1.50 with the TypeScript SDK 0.2.50, *new* is CLI 2.1.325 with the
//! TypeScript SDK 0.3.325 and the Python SDK 0.2.182. The protocol only grew: an engine that does what the old one
//! did serves all three SDKs.
//!
//! Where a statement comes from is marked: \[D\] published type declarations, \[P\] source of the MIT-licensed
//! Python SDK, \[O\] observed traffic; without a mark, observation and declaration agree. *Recorded* names a scenario
//! in the repository's `fixtures/wire`, whose `.stdin.jsonl` and `.stdout.jsonl` show it line by line. In tables,
//! *T2*, *T3* and *P* are the three SDKs in the order above.
//!
//! Read in this order:
//!
//! 1. [`process`]: start, arguments, environment, framing, end.
//! 2. [`crate::frame`]: the frames on stdin and stdout, with every field.
//! 3. [`turn`]: the order inside a turn, subagents, results, errors, interruptions.
//! 4. [`crate::control`]: requests and answers in both directions.
//! 5. [`host`]: permissions, hooks, in-process MCP, structured output.
//! 6. [`disk`]: session files, checkpoints, slash commands.
//! 7. [`peers`]: what the SDKs require, and the traps.

#[doc = include_str!("../docs/process.md")]
pub mod process {}

#[doc = include_str!("../docs/turn.md")]
pub mod turn {}

#[doc = include_str!("../docs/host.md")]
pub mod host {}

#[doc = include_str!("../docs/disk.md")]
pub mod disk {}

#[doc = include_str!("../docs/peers.md")]
pub mod peers {}
