//! The differential fuzzer of permission decisions: generates commands, asks for the decision, runs in bash those
//! classified as harmless, and checks whether they were.
//!
//! `ostler-fuzz judge --count 1000000 --seed 1`. A command is harmful when a file in or around the project was created,
//! changed or removed, or when a secret is in its output: a file outside of the project, a file that a rule denies, a
//! variable of the environment. Some commands change files and are judged in mode acceptEdits, which may change what is in
//! the project and nothing else, and may not run code. Everything runs in the sandbox of `confine.rs`.

mod ask;
mod check;
mod confine;
mod generate;
mod grammar;
mod hostile;
mod matrix;
mod options;
mod pieces;
mod pools;
mod run;
mod worker;
mod world;

use std::collections::HashSet;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::Result;

use self::ask::Setting;
use self::options::Options;
use self::worker::Worker;

/// Runs the command line after `judge`.
pub fn main(args: &[OsString]) -> ExitCode {
    let options = match Options::parse(args) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    match start(&options, args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("fuzz: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(options: &Options, args: &[OsString]) -> Result<bool> {
    if !confine::is_confined() {
        let mut again = vec!["judge".into()];
        again.extend_from_slice(args);
        return Ok(confine::start_confined(&again)?.success());
    }
    check::notices_harm()?;
    match options {
        Options { matrix: true, every, .. } => matrix::matrix(*every),
        Options { commands, .. } if !commands.is_empty() => check::check(commands),
        _ => fuzz(options),
    }
}

/// What a run found.
#[derive(Debug, Default)]
struct Tally {
    made: AtomicU64,
    harmless: AtomicU64,
    /// Harmless commands that were run before are not run again.
    seen: Mutex<HashSet<u64>>,
    findings: Mutex<Vec<Finding>>,
    timeouts: AtomicU64,
}

/// A command that is not as harmless as the judge says.
#[derive(Clone, Debug)]
struct Finding {
    number: u64,
    seconds: f64,
    project: &'static str,
    command: String,
    settings: Vec<Setting>,
    harm: Vec<String>,
}

fn fuzz(options: &Options) -> Result<bool> {
    let n_threads = thread::available_parallelism().map_or(1, usize::from);
    println!("fuzz judge: seed {}, {} commands, {n_threads} threads", options.seed, options.count);
    let (tally, start) = (Tally::default(), Instant::now());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads)
            .map(|index| {
                let (tally, start) = (&tally, &start);
                scope.spawn(move || Worker::new(index)?.run(options, tally, start))
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a worker does not panic"))
    })?;
    Ok(tally.report(start.elapsed().as_secs_f64()))
}

impl Tally {
    fn is_new(&self, project: &str, command: &str) -> bool {
        self.harmless.fetch_add(1, Ordering::Relaxed);
        let mut hasher = DefaultHasher::new();
        (project, command).hash(&mut hasher);
        lock(&self.seen).insert(hasher.finish())
    }

    fn report(&self, seconds: f64) -> bool {
        let findings = lock(&self.findings);
        let made = self.made.load(Ordering::Relaxed);
        let (harmless, run) = (self.harmless.load(Ordering::Relaxed), lock(&self.seen).len());
        println!(
            "fuzz judge: about {made} commands made, {harmless} judged harmless, {run} different ones run, {} harmful, {} \
             timed out, in {seconds:.0} s",
            findings.len(),
            self.timeouts.load(Ordering::Relaxed),
        );
        if let Some(first) = findings.iter().map(|it| it.seconds).min_by(f64::total_cmp) {
            let per_minute = findings.len() as f64 / seconds * 60.0;
            println!("fuzz judge: the first after {first:.1} s, {per_minute:.0} a minute");
        }
        findings.is_empty()
    }
}

fn names(settings: &[Setting]) -> String {
    if settings.len() == ask::SETTINGS.len() {
        return "every setting".to_owned();
    }
    settings.iter().map(|setting| setting.name).collect::<Vec<_>>().join("; ")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
