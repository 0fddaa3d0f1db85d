//! Runs the selected scenarios, several at a time, and prints the results.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};

use crate::against::Played;
use crate::driver::Driver;
use crate::judge::first_difference;
use crate::play::{Log, play};
use crate::scenario::Scenario;
use crate::sdk::Sdk;
use crate::{Args, against, table};

/// One scenario with one SDK, and its result.
pub(crate) struct Outcome {
    pub(crate) scenario: String,
    pub(crate) about: String,
    pub(crate) sdk: Sdk,
    /// The first difference from the expectation.
    pub(crate) difference: Option<String>,
}

/// Whether all passed.
pub(crate) async fn run(args: &Args) -> Result<bool> {
    let wanted = wanted(args)?;
    let Some(program) = args.cli.as_deref().filter(|_| !args.list) else {
        wanted.iter().for_each(|scenario| println!("{:32} {}", scenario.name, scenario.about));
        return Ok(true);
    };
    let start = Instant::now();
    let played = play_all(args, &wanted, program, args.save.as_deref()).await?;
    for (scenario, sdk, log) in played.iter().filter(|_| args.verbose) {
        print_log(scenario, *sdk, log);
    }
    let good = match &args.against {
        Some(other) => {
            let theirs = play_all(args, &wanted, other, None).await?;
            against::compare(args, &played, &theirs)?
        }
        None => judge(args, &played),
    };
    eprintln!("conformance: {} runs, {:.0} s", played.len(), start.elapsed().as_secs_f64());
    Ok(good)
}

/// Prints the table. Returns whether all passed.
fn judge(args: &Args, played: &[Played<'_>]) -> bool {
    let outcome = |(scenario, sdk, log): &Played<'_>| Outcome {
        scenario: scenario.name.clone(),
        about: scenario.about.clone(),
        sdk: *sdk,
        difference: first_difference(scenario, *sdk, log),
    };
    let outcomes: Vec<Outcome> = played.iter().map(outcome).collect();
    print!("{}", table::render(&outcomes));
    if args.as_tests {
        print!("{}", table::as_tests(&outcomes));
    }
    let failed = outcomes.iter().filter(|outcome| outcome.difference.is_some()).count();
    println!("\n{} runs passed, {failed} failed", outcomes.len() - failed);
    failed == 0
}

fn wanted(args: &Args) -> Result<Vec<Scenario>> {
    let mut scenarios = Scenario::all(&args.kit.join("scenarios"))?;
    let named = |scenario: &Scenario| args.only.iter().any(|part| scenario.name.contains(part));
    scenarios.retain(|scenario| args.only.is_empty() || named(scenario));
    ensure!(!scenarios.is_empty(), "no scenario matches {:?}", args.only);
    Ok(scenarios)
}

/// Runs all of them with each of their SDKs, or loads saved runs from a folder.
async fn play_all<'a>(
    args: &Args,
    scenarios: &'a [Scenario],
    program: &Path,
    kept_in: Option<&Path>,
) -> Result<Vec<Played<'a>>> {
    let chosen = |sdk: &Sdk| args.sdk.is_empty() || args.sdk.contains(sdk);
    // Even if a folder has that name.
    let is_vendor = program.as_os_str() == "vendor";
    if program.is_dir() && !is_vendor {
        let pairs = scenarios.iter().flat_map(|scenario| {
            let mine =
                Sdk::ALL.into_iter().filter(chosen).filter(|sdk| scenario.sdks.contains(sdk));
            mine.map(move |sdk| (scenario, sdk))
        });
        return pairs
            .map(|(scenario, sdk)| Ok((scenario, sdk, load(program, &scenario.name, sdk)?)))
            .collect();
    }
    let sdks = Sdk::ALL.into_iter().filter(chosen);
    let mut drivers = BTreeMap::new();
    for sdk in sdks.filter(|sdk| scenarios.iter().any(|scenario| scenario.sdks.contains(sdk))) {
        let program = if is_vendor { sdk.vendor()? } else { found(program)? };
        drivers
            .insert(sdk, (Driver::start(sdk, &args.kit.join("drivers"), args.verbose)?, program));
    }
    let pairs = scenarios.iter().flat_map(|scenario| {
        let mine = drivers.iter().filter(|(sdk, _)| scenario.sdks.contains(sdk));
        mine.map(move |(sdk, (driver, program))| (scenario, *sdk, driver, program))
    });
    let runs = pairs.map(|(scenario, sdk, driver, program)| async move {
        let log = AssertUnwindSafe(play(scenario, sdk, driver, program)).catch_unwind().await;
        let log = log.unwrap_or_else(|_| Err(anyhow!("the run panicked")));
        let failed = |error| Log { faults: vec![format!("{error:#}")], ..Log::default() };
        let log = log.unwrap_or_else(failed);
        // Saved at once, because a long suite may be stopped before its end.
        kept_in.map_or(Ok(()), |folder| save(folder, &scenario.name, sdk, &log))?;
        Ok((scenario, sdk, log))
    });
    stream::iter(runs).buffered(args.jobs).try_collect().await
}

fn found(program: &Path) -> Result<PathBuf> {
    ensure!(program.is_file(), "there is no program {}", program.display());
    Ok(program.canonicalize()?)
}

/// The file of a saved run.
fn place(folder: &Path, scenario: &str, sdk: Sdk) -> PathBuf {
    folder.join(format!("{scenario}.{sdk}.json"))
}

fn save(folder: &Path, scenario: &str, sdk: Sdk, log: &Log) -> Result<()> {
    std::fs::create_dir_all(folder).context("making the folder for runs")?;
    let path = place(folder, scenario, sdk);
    std::fs::write(&path, serde_json::to_string(log)?)
        .with_context(|| format!("writing {}", path.display()))
}

/// Loads a saved run.
fn load(folder: &Path, scenario: &str, sdk: Sdk) -> Result<Log> {
    let path = place(folder, scenario, sdk);
    let text = std::fs::read_to_string(&path);
    let text = text.with_context(|| format!("reading {}", path.display()))?;
    Ok(serde_json::from_str(&text)?)
}

fn print_log(scenario: &Scenario, sdk: Sdk, log: &Log) {
    println!("== {} {sdk}", scenario.name);
    for event in &log.events {
        println!("{event}");
    }
    for fault in &log.faults {
        println!("fault: {fault}");
    }
}
