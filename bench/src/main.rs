//! Benchmarks with a limit, which fail if it is exceeded: `cargo xtask bench [name…]`.
//!
//! Each benchmark is a module with one function, listed in [`BENCHMARKS`]. They compare two things in the same
//! run and judge by the ratio, which says the same on a slow machine as on a fast one.

mod concurrent;
mod decode;
mod dropin;
mod engine;
mod hooks;
mod load;
mod long;
mod mcp;
mod measure;
mod memory;
mod open;
mod prepared_api;
mod process;
mod resume;
mod sandbox;
mod sdk;
mod size;
mod spawn;
mod store;
mod table;
mod traffic;
mod turns;

use std::process::ExitCode;

use anyhow::Result;

/// Runs the benchmark, prints its figures, and returns the exceeded limits.
type Benchmark = fn() -> Result<Vec<String>>;

const BENCHMARKS: &[(&str, Benchmark)] = &[
    ("concurrent", concurrent::run),
    ("decode", decode::run),
    ("dropin", dropin::run),
    ("engine", engine::run),
    ("hooks", hooks::run),
    ("load", load::run),
    ("long", long::run),
    ("mcp", mcp::run),
    ("memory", memory::run),
    ("open", open::run),
    ("resume", resume::run),
    ("sandbox", sandbox::run),
    ("sdk", sdk::run),
    ("size", size::run),
    ("spawn", spawn::run),
    ("store", store::run),
    ("turns", turns::run),
];

fn main() -> ExitCode {
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    match wanted.first().map(String::as_str) {
        Some(process::WATCH) => return process::watch(&wanted[1..]),
        Some(long::CONVERSE) => return long::converse(&wanted[1..]),
        Some(sdk::CONSUME) => return sdk::consume(),
        _ => {}
    }
    if let Ok(n_deltas) = std::env::var(sdk::FAKE_ENGINE) {
        return sdk::speak(&n_deltas);
    }
    if let Some(place) = wanted.iter().position(|word| word == memory::SESSIONS) {
        wanted.drain(place..(place + 2).min(wanted.len()));
    }
    for name in &wanted {
        if !BENCHMARKS.iter().any(|(known, _)| known == name) {
            let known: Vec<_> = BENCHMARKS.iter().map(|(known, _)| *known).collect();
            eprintln!("unknown benchmark {name:?}; available: {}", known.join(", "));
            return ExitCode::from(2);
        }
    }
    let mut broken = Vec::new();
    for (name, benchmark) in BENCHMARKS {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        match benchmark() {
            Ok(promises) => broken.extend(promises),
            Err(error) => broken.push(format!("{name} could not run: {error:#}")),
        }
    }
    for promise in &broken {
        eprintln!("bench: {promise}");
    }
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
