//! The same behaviour on four backends: the embedded engine, `ostler` as a child process, and the vendor's command
//! line programs of 2.1.50 and 2.1.325.
//!
//! A scenario is a script for the API, what a client does, and the story that comes of it. Where a backend tells another
//! story, [`differences`] says which and why; an entry that no longer differs fails.

mod differences;
mod options;
mod scenarios;
mod stage;
mod story;

use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use ostler_testkit::Script;

use self::stage::{Backend, Stage};

/// What a client does.
type Act = for<'a> fn(&'a Stage) -> BoxFuture<'a, ()>;

/// A scenario.
struct Scenario {
    name: &'static str,
    script: Script,
    act: Act,
    /// What happens, a line each, apart from leading white space.
    story: &'static str,
}

fn scenario(name: &'static str, script: Script, act: Act, story: &'static str) -> Scenario {
    Scenario { name, script, act, story }
}

/// Lines without what only the layout of the source put before them.
fn tidy(story: &str) -> String {
    story.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// Plays a scenario; the complaint if it goes otherwise than expected.
async fn play(backend: Backend, scenario: Scenario) -> Option<String> {
    let Scenario { name, script, act, story } = scenario;
    let stage = Stage::new(backend, script).await;
    let played = std::panic::AssertUnwindSafe(act(&stage)).catch_unwind().await;
    let mut actual = stage.story();
    if let Err(panic) = played {
        let text = panic.downcast_ref::<String>().map_or("panic", String::as_str);
        actual = format!("{actual}\npanicked: {text}");
    }
    let known = differences::of(name, backend);
    let (expected, base) = (tidy(known.unwrap_or(story)), tidy(story));
    if known.is_some() && expected == base {
        return Some(format!("== {name}: the difference is the story itself; take it out"));
    }
    if tidy(&actual) == expected {
        return None;
    }
    let hint = if known.is_some() && actual == base { " (no longer differs)" } else { "" };
    Some(format!("== {name}{hint}\n-- expected\n{expected}\n-- actual\n{actual}"))
}

/// Plays all scenarios, some side by side: most of the time is spent waiting.
async fn play_all(backend: Backend, at_once: usize) {
    // For a look at some of them.
    let only = std::env::var("OSTLER_SCENARIO").unwrap_or_default();
    let is_wanted = |scenario: &Scenario| only.split(',').any(|part| scenario.name.contains(part));
    let scenarios = scenarios::all().into_iter().filter(is_wanted);
    let played = futures::stream::iter(scenarios).map(|scenario| play(backend, scenario));
    let complaints: Vec<String> =
        played.buffered(at_once).filter_map(|complaint| async { complaint }).collect().await;
    assert!(complaints.is_empty(), "{backend:?}\n{}", complaints.join("\n"));
}

#[test]
fn the_table_of_differences_names_scenarios_that_exist() {
    let mut known: Vec<&str> = scenarios::all().iter().map(|scenario| scenario.name).collect();
    known.sort_unstable();
    assert!(known.windows(2).all(|pair| pair[0] != pair[1]), "a name is used twice: {known:?}");
    for difference in differences::DIFFERENCES {
        assert!(known.contains(&difference.scenario), "{}", difference.scenario);
        assert!(!difference.reason.is_empty(), "{}", difference.scenario);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_engine_tells_the_stories() {
    play_all(Backend::Embedded, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_process_tells_the_stories() {
    play_all(Backend::Child, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn the_older_vendor_program_tells_the_stories() {
    play_all(Backend::Vendor50, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn the_newer_vendor_program_tells_the_stories() {
    play_all(Backend::Vendor325, 4).await;
}
