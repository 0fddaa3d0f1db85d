//! Which settings files exist, and what in them is not valid.

use ostler::engine::always::AlwaysRules;
use ostler::engine::pick::OFFLINE;
use ostler::engine::{self as host, StartContext, rules};
use ostler_engine::permission::Source;
use ostler_engine::settings::{self, Folders, Sources};
use ostler_proto::launch::SessionChoice;

use super::{Finding, Health};

/// Checks each file by itself, and then all of them together as a session would.
pub(super) fn check(scene: &StartContext) -> Vec<Finding> {
    let folders = rules::folders(scene);
    let files = [Source::User, Source::Project, Source::Local];
    let mut findings: Vec<_> =
        files.into_iter().flat_map(|source| check_file(scene, &folders, source)).collect();
    if findings.is_empty() {
        findings.push(Finding::good("settings: no files, so the defaults apply"));
    }
    let is_reported = findings.iter().any(|finding| finding.health == Health::Bad);
    match rules::load(scene) {
        Ok(_) => {
            if let Err(error) = host::start(&trial(scene)) {
                let text = format!("settings: {error}");
                findings
                    .push(Finding::bad(text, "correct the hooks; no session starts until then"));
            }
        }
        // The problem is not in a file, so it is on the command line.
        Err(error) if !is_reported => {
            findings.push(Finding::bad(format!("settings: {error}"), "correct the arguments"));
        }
        Err(_) => {}
    }
    findings
}

/// The same session without a model and without reading or saving a session file.
fn trial(scene: &StartContext) -> StartContext {
    let mut trial = scene.clone();
    trial.launch.model.name = Some(OFFLINE.to_owned());
    trial.launch.session = SessionChoice::default();
    trial.launch.no_session_persistence = true;
    trial
}

fn check_file(scene: &StartContext, folders: &Folders, source: Source) -> Vec<Finding> {
    let Some(path) = folders.file(source).filter(|path| path.exists()) else { return Vec::new() };
    let only = Sources {
        user: source == Source::User,
        project: source == Source::Project,
        local: source == Source::Local,
        trusts_project: scene.trusts_project,
        ..Sources::default()
    };
    let (health, problems): (fn(String, &str) -> Finding, _) = match settings::load(folders, &only)
    {
        Err(error) => (|text, fix| Finding::bad(text, fix), error.problems),
        Ok(mut settings) => {
            if source == Source::Local {
                AlwaysRules::of(folders)
                    .iter()
                    .for_each(|kept| kept.confirm(folders, &mut settings));
            }
            (|text, fix| Finding::odd(text, fix), settings.warnings)
        }
    };
    let findings = problems.iter().map(|problem| {
        let fix = match problem.reason.contains("not trusted") {
            true => "pass --trust-project if you trust the files in this folder",
            false => "correct the file",
        };
        health(format!("settings: {problem}"), fix)
    });
    let findings: Vec<_> = findings.collect();
    match findings.is_empty() {
        true => vec![Finding::good(format!("settings: {}", path.display()))],
        false => findings,
    }
}
