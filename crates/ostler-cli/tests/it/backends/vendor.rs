//! The stories of the vendor's programs: saved ones where nothing has changed, all others played now.

use std::io::Write as _;

use futures::StreamExt as _;

use super::fixture::{self, Fixture};
use super::scenarios::{Group, groups};
use super::stage::Backend;
use super::{AT_ONCE, Scenario, complaint, is_wanted, play};

/// Set by `cargo xtask test --full`: then every scenario is played.
const FULL: &str = "OSTLER_FULL";

/// The result of one scenario.
struct Outcome {
    scenario: &'static str,
    story: String,
    /// Whether the program was started for it.
    played: bool,
    complaint: Option<String>,
}

/// Compares a vendor program with all scenarios. Saves the stories that were played.
pub(super) async fn check(backend: Backend) {
    let path = fixture::path(backend.fixture());
    let kept = Fixture::read(&path);
    let now = fixture::inputs(backend.version(), &groups());
    let full = std::env::var_os(FULL).is_some();
    let each = |Group { name, scenarios, .. }: Group| {
        scenarios.into_iter().filter(is_wanted).map(move |scenario| (name, scenario))
    };
    let outcomes = futures::stream::iter(groups().into_iter().flat_map(each))
        .map(|(group, scenario)| {
            let kept = kept.current(&now, group, scenario.name).map(str::to_owned);
            outcome(backend, scenario, kept, full)
        })
        .buffered(AT_ONCE);
    let outcomes: Vec<Outcome> = outcomes.collect().await;
    let complaints: Vec<&str> =
        outcomes.iter().filter_map(|outcome| outcome.complaint.as_deref()).collect();
    assert!(complaints.is_empty(), "{backend:?}\n{}", complaints.join("\n"));
    let played = outcomes.iter().filter(|outcome| outcome.played).count();
    say(&format!("{backend:?}: compared {} stories, played {played} now", outcomes.len()));
    if std::env::var_os("OSTLER_SCENARIO").is_none() {
        let stories =
            outcomes.into_iter().map(|outcome| (outcome.scenario.to_owned(), outcome.story));
        keep(&kept, Fixture { inputs: now, stories: stories.collect() }, &path);
    }
}

async fn outcome(
    backend: Backend,
    scenario: Scenario,
    kept: Option<String>,
    full: bool,
) -> Outcome {
    let Scenario { name, script, act, story } = scenario;
    let (actual, played) = match &kept {
        Some(kept) if !full => (kept.clone(), false),
        _ => (play(backend, script, act).await, true),
    };
    let complaint =
        complaint(backend, name, story, &actual).or_else(|| changed(name, kept, &actual));
    Outcome { scenario: name, story: actual, played, complaint }
}

/// A complaint if a program, with the same inputs, did something else last time: such a story cannot be saved.
fn changed(name: &str, kept: Option<String>, actual: &str) -> Option<String> {
    let kept = kept.filter(|kept| kept != actual)?;
    Some(format!(
        "== {name}: not the story in fixtures/stories\n-- saved\n{kept}\n-- actual\n{actual}"
    ))
}

/// Writes the file again if a story has changed. The check has passed in any case.
fn keep(kept: &Fixture, new: Fixture, path: &std::path::Path) {
    if *kept == new {
        return;
    }
    let name = path.file_name().unwrap_or_default().display();
    match new.write(path) {
        Ok(()) => {
            say(&format!("fixtures/stories/{name} was out of date and is written again: commit it"))
        }
        Err(error) => {
            say(&format!("fixtures/stories/{name} is out of date and cannot be written: {error}"))
        }
    }
}

/// Bypasses the test harness, which hides the output of passing tests.
fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").ok();
}

// Mutant: `changed` always returns `None`.
#[test]
fn a_program_that_no_longer_matches_its_saved_story_is_a_complaint() {
    assert_eq!(changed("text", None, "init"), None);
    assert_eq!(changed("text", Some("init".to_owned()), "init"), None);
    let complaint = changed("text", Some("init".to_owned()), "init\nover").unwrap();
    assert!(complaint.contains("-- saved\ninit\n-- actual\ninit\nover"), "{complaint}");
}

// Mutant: `outcome` returns the kept story without comparing it.
#[tokio::test]
async fn a_saved_story_that_is_not_the_expected_one_is_a_complaint() {
    let backend = Backend::Vendor325;
    for (kept, complains) in
        [("init\ntext Hello.\nresult success \"Hello.\"", false), ("init", true)]
    {
        let scenario = super::scenarios::all().into_iter().find(|it| it.name == "text").unwrap();
        let outcome = outcome(backend, scenario, Some(kept.to_owned()), false).await;
        assert_eq!((outcome.complaint.is_some(), outcome.played), (complains, false), "{kept}");
    }
}
