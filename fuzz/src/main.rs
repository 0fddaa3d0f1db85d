//! The stable driver: damages recorded traffic at random and runs the targets on it for a bounded time.
//!
//! `ostler-fuzz [--seconds N] [--seed S]`, or `ostler-fuzz FILE…` to run the targets on given inputs. Exits with 1
//! when a promise is broken; the input, shortened, is then in `target/fuzz-failures`. `ostler-fuzz judge` examines the
//! permission judge instead, see [`judge`].

mod failure;
mod mutate;
mod options;
mod seeds;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result};
use ostler_fuzz::random::Random;
use ostler_fuzz::{TARGETS, Target, judge, shrink};

use crate::failure::Failures;
use crate::mutate::Mutator;
use crate::options::Options;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some((_, args)) = args.split_first().filter(|(first, _)| *first == "judge") {
        return judge::main(args);
    }
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!(
                "{message}\nusage: ostler-fuzz [--seconds N] [--seed S] | ostler-fuzz FILE… | ostler-fuzz judge …"
            );
            return ExitCode::from(2);
        }
    };
    failure::remember_panics();
    let failures = Failures::default();
    let outcome = if options.files.is_empty() {
        fuzz(&options, &failures)
    } else {
        replay(&options, &failures)
    };
    match outcome {
        Ok(()) if failures.count() == 0 => ExitCode::SUCCESS,
        Ok(()) => {
            println!("{} broken promises", failures.count());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("fuzz: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn fuzz(options: &Options, failures: &Failures) -> Result<()> {
    let seeds = seeds::load()?;
    let n_threads = thread::available_parallelism().map_or(1, usize::from);
    println!(
        "fuzz: seed {}, {} seconds, {n_threads} threads, {} seed inputs",
        options.seed,
        options.time.as_secs(),
        seeds.len()
    );
    let runs = AtomicU64::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        for index in 0..n_threads as u64 {
            let random = Random::new(options.seed.wrapping_add(index << 32));
            let (seeds, runs) = (&seeds, &runs);
            scope.spawn(move || {
                let n_runs = run_for(options.time, Mutator::new(seeds, random), failures);
                runs.fetch_add(n_runs, Ordering::Relaxed);
            });
        }
    });
    let (runs, time) = (runs.into_inner(), start.elapsed().as_secs_f64());
    println!("fuzz: {runs} runs in {time:.1} s, {:.0} runs/s", runs as f64 / time);
    Ok(())
}

/// Runs the targets until the time is over and counts the runs.
fn run_for(time: Duration, mut mutator: Mutator<'_>, failures: &Failures) -> u64 {
    let end = Instant::now() + time;
    let mut n_runs = 0;
    while Instant::now() < end {
        let lines = mutator.lines();
        let noise = mutator.noise();
        for (name, target) in TARGETS {
            // The peer reads its bytes as operations, for which text would be a poor choice.
            let input = if name == "peer" { &noise } else { &lines };
            attempt(name, target, input, failures);
            n_runs += 1;
        }
    }
    n_runs
}

fn attempt(name: &str, target: Target, input: &[u8], failures: &Failures) {
    let Err(panic) = failure::caught(target, input) else { return };
    if failures.is_new(name, &panic) {
        let shortest = shrink::shrink(input, |shorter| {
            failure::caught(target, shorter).is_err_and(|other| other.check() == panic.check())
        });
        // Reported from the shortened input: its message is about what is in the file.
        let panic = failure::caught(target, &shortest).err().unwrap_or(panic);
        failures.report(name, &panic, &shortest);
    }
}

fn replay(options: &Options, failures: &Failures) -> Result<()> {
    for file in &options.files {
        let input = fs::read(file).with_context(|| format!("reading {file}"))?;
        for (name, target) in TARGETS {
            if let Err(panic) = failure::caught(target, &input) {
                failures.is_new(name, &panic);
                println!("{file}: {name}: {}: {}", panic.location, panic.message);
            }
        }
    }
    Ok(())
}
