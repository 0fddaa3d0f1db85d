//! `ostler doctor`: checks everything a session needs, and reports each problem with a fix.

mod disk;
mod key;
mod model;
mod servers;
mod settings;

use std::process::ExitCode;

use ostler::engine::rules;
use ostler_engine::settings::Settings;
use ostler_server::checkup::{self, Finding, Health};

use crate::args::Args;
use crate::scene;
use crate::screen::{GREEN, RED, Screen, YELLOW};
use crate::text::clean;

/// Runs all checks. Fails if something is broken.
pub(crate) async fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let scene = scene::of(args)?;
    let mut n_bad = 0;
    let mut tell = |findings: Vec<Finding>| {
        n_bad += findings.iter().filter(|finding| finding.health == Health::Bad).count();
        findings.iter().try_for_each(|finding| show(finding, screen))
    };
    // `settings::check` below reports problems of the settings.
    let settings = rules::load(&scene).map(|rules| rules.settings).unwrap_or_default();
    let (finding, config) = key::check(&scene, &settings);
    tell(vec![finding])?;
    if let Some(config) = config {
        tell(vec![model::check(config).await])?;
    }
    tell(settings::check(&scene))?;
    tell(servers::check(args, &scene).await)?;
    tell(disk::check(&scene.cwd))?;
    let path = scene.env.get("PATH");
    tell(vec![checkup::shell().about("shell"), checkup::git(path.as_deref()).about("git")])?;
    tell(vec![sandbox(&settings)])?;
    match n_bad {
        0 => screen.line("Everything that is needed works.")?,
        1 => screen.line("1 problem found.")?,
        n => screen.line(&format!("{n} problems found."))?,
    }
    Ok(if n_bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether commands can run in a sandbox, and whether they do.
fn sandbox(settings: &Settings) -> Finding {
    let wanted = settings.sandbox.clone().unwrap_or_default();
    match (ostler::engine::sandbox::availability(), wanted.enabled == Some(true)) {
        (Ok(backend), true) => {
            Finding::good(format!("sandbox: commands run in one ({backend}, Landlock, seccomp)"))
        }
        (Ok(backend), false) => {
            let text = format!("sandbox: available ({backend}), and commands run without it");
            Finding::odd(text, "set sandbox.enabled to true in the settings")
        }
        (Err(reason), true) if wanted.is_required() => {
            let fix = "or set sandbox.failIfUnavailable to false to run commands without it";
            Finding::bad(format!("sandbox: requested, and not available: {reason}"), fix)
        }
        (Err(reason), _) => {
            let text = format!("sandbox: not available, so commands run without one: {reason}");
            Finding::odd(text, "it is needed only for sandbox.enabled and for users of a server")
        }
    }
}

fn show(finding: &Finding, screen: &mut Screen) -> std::io::Result<()> {
    let (mark, style) = match finding.health {
        Health::Good => ("✓", GREEN),
        Health::Odd => ("!", YELLOW),
        Health::Bad => ("✗", RED),
    };
    let text = clean(&finding.text);
    let fix = finding.fix.as_ref().map(|fix| format!("→ {}", clean(fix)));
    for (index, line) in screen.fitted(&text, 2).into_iter().enumerate() {
        let mark = if index == 0 { mark } else { " " };
        screen.line(&format!("{style}{mark}{style:#} {line}"))?;
    }
    screen
        .fitted(&fix.unwrap_or_default(), 2)
        .iter()
        .try_for_each(|line| screen.line(&format!("  {line}")))
}
