//! The same behaviour on four backends: the embedded engine, `ostler` as a child process, and the vendor's command
//! line programs of 2.1.50 and 2.1.325.
//!
//! A scenario is a script for the API, the actions of a client, and the expected story. If a backend has another story,
//! [`differences`] says which and why; an entry that no longer differs fails.
//!
//! The vendor's programs are started only for scenarios that changed since their stories were saved: see [`fixture`].

mod differences;
mod fixture;
mod options;
mod scenarios;
mod stage;
mod story;
mod vendor;
pub(crate) mod vendor_paths;

use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use ostler_testkit::Script;

use self::stage::{Backend, Stage};

/// How many scenarios are played at the same time.
const AT_ONCE: usize = 4;

/// The actions of a client.
type Act = for<'a> fn(&'a Stage) -> BoxFuture<'a, ()>;

struct Scenario {
    name: &'static str,
    script: Script,
    act: Act,
    /// The events, one per line; leading white space does not count.
    story: &'static str,
}

fn scenario(name: &'static str, script: Script, act: Act, story: &'static str) -> Scenario {
    Scenario { name, script, act, story }
}

/// Removes the indentation of the source.
fn tidy(story: &str) -> String {
    story.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// Plays a scenario, and returns its story.
async fn play(backend: Backend, script: Script, act: Act) -> String {
    let stage = Stage::new(backend, script).await;
    let played = std::panic::AssertUnwindSafe(act(&stage)).catch_unwind().await;
    let mut actual = stage.story();
    if let Err(panic) = played {
        let text = panic.downcast_ref::<String>().map_or("panic", String::as_str);
        actual = format!("{actual}\npanicked: {text}");
    }
    tidy(&actual)
}

/// A complaint if the story is not the expected one.
fn complaint(backend: Backend, name: &str, story: &str, actual: &str) -> Option<String> {
    let known = differences::of(name, backend);
    let (expected, base) = (tidy(known.unwrap_or(story)), tidy(story));
    if known.is_some() && expected == base {
        return Some(format!("== {name}: the difference equals the common story; remove it"));
    }
    if actual == expected {
        return None;
    }
    let hint = if known.is_some() && actual == base { " (no longer differs)" } else { "" };
    Some(format!("== {name}{hint}\n-- expected\n{expected}\n-- actual\n{actual}"))
}

/// To play only some scenarios.
fn is_wanted(scenario: &Scenario) -> bool {
    let only = std::env::var("OSTLER_SCENARIO").unwrap_or_default();
    only.split(',').any(|part| scenario.name.contains(part))
}

/// Plays all scenarios, several at the same time: most of the time is spent waiting.
async fn play_all(backend: Backend) {
    let scenarios = scenarios::all().into_iter().filter(is_wanted);
    let played = futures::stream::iter(scenarios).map(|scenario| async move {
        let actual = play(backend, scenario.script, scenario.act).await;
        complaint(backend, scenario.name, scenario.story, &actual)
    });
    let complaints: Vec<String> =
        played.buffered(AT_ONCE).filter_map(|complaint| async { complaint }).collect().await;
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
async fn the_embedded_engine_matches_the_stories() {
    play_all(Backend::Embedded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_process_matches_the_stories() {
    play_all(Backend::Child).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn the_older_vendor_program_matches_the_stories() {
    vendor::check(Backend::Vendor50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn the_newer_vendor_program_matches_the_stories() {
    vendor::check(Backend::Vendor325).await;
}

// Mutant: `ostler` does not send `ostler_version`, so that its own number is taken for that of a very old Claude Code.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_version_of_our_own_engines_is_known_and_not_compared() {
    for backend in [Backend::Embedded, Backend::Child] {
        let version = version(backend, true).await;
        assert_eq!(version, Some(format!("ostler {}", env!("CARGO_PKG_VERSION"))), "{backend:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn the_versions_of_the_vendors_programs_are_known() {
    let (before, after) = (true, false);
    assert_eq!(version(Backend::Vendor50, before).await, None);
    assert_eq!(version(Backend::Vendor50, after).await.as_deref(), Some("Claude Code 2.1.50"));
    for when in [before, after] {
        let version = version(Backend::Vendor325, when).await;
        assert_eq!(version.as_deref(), Some("Claude Code 2.1.325"));
    }
}

/// The version that a session reports for its engine, before or after the first prompt.
async fn version(backend: Backend, is_before: bool) -> Option<String> {
    use ostler_testkit::{reply, when};

    let stage = Stage::new(backend, Script::new().rule(when(), reply().text("Hi."))).await;
    let mut client = stage.client(stage.options()).await;
    if !is_before {
        stage.within("the answer", client.prompt("hello")).await.unwrap();
    }
    client.handle().reported_version().map(|version| version.to_string())
}
