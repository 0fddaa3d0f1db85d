//! `ostler doctor`: looks at everything a session needs, and says what is wrong and what to do about it.

mod disk;
mod key;
mod model;
mod programs;
mod settings;

use std::process::ExitCode;

use ostler::engine::rules;

use crate::args::Args;
use crate::scene;
use crate::screen::{GREEN, RED, Screen, YELLOW};
use crate::text::clean;

/// What was found about one thing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    health: Health,
    /// What, and how it is.
    text: String,
    /// What to do about it.
    fix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Good,
    /// It works, but perhaps not as meant.
    Odd,
    Bad,
}

impl Finding {
    fn good(text: impl Into<String>) -> Self {
        Self { health: Health::Good, text: text.into(), fix: None }
    }

    fn odd(text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { health: Health::Odd, text: text.into(), fix: Some(fix.into()) }
    }

    fn bad(text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { health: Health::Bad, text: text.into(), fix: Some(fix.into()) }
    }
}

/// Looks at everything, and fails if something is broken.
pub(crate) async fn run(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let scene = scene::of(args)?;
    let mut n_bad = 0;
    let mut tell = |findings: Vec<Finding>| {
        n_bad += findings.iter().filter(|finding| finding.health == Health::Bad).count();
        findings.iter().try_for_each(|finding| show(finding, screen))
    };
    // What is wrong with the settings is told below.
    let settings = rules::load(&scene).map(|rules| rules.settings).unwrap_or_default();
    let (finding, config) = key::check(&scene, &settings);
    tell(vec![finding])?;
    if let Some(config) = config {
        tell(vec![model::check(config).await])?;
    }
    tell(settings::check(&scene))?;
    tell(disk::check(&scene.cwd))?;
    tell(programs::check(scene.env.get("PATH").as_deref()))?;
    match n_bad {
        0 => screen.line("All that is needed works.")?,
        1 => screen.line("One thing is broken.")?,
        n => screen.line(&format!("{n} things are broken."))?,
    }
    Ok(if n_bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
