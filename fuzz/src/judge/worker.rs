//! One thread: makes commands, asks, runs, shortens what was found.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result};

use super::ask::{Judge, Setting};
use super::options::Options;
use super::run::Runner;
use super::{Finding, Tally, generate, lock, names};
use crate::shrink;

/// One command of so many changes files and is judged in a mode that lets it. After each the project is made again, which
/// takes longer than the command.
const EDITS_AMONG: u64 = 32;

/// One thread with folders of its own.
pub(super) struct Worker {
    root: String,
    pub(super) runner: Runner,
    /// A judge for every project.
    pub(super) judges: Vec<(&'static str, Judge)>,
}

impl Worker {
    pub(super) fn new(index: usize) -> Result<Self> {
        let root = format!("/worlds/{index}");
        let runner = Runner::new(&PathBuf::from(&root))?;
        let world = &runner.world;
        let judge = |name: &&'static str| (*name, Judge::new(&world.project(name), &world.home()));
        let judges = world.projects.iter().map(judge).collect();
        Ok(Self { root, runner, judges })
    }

    /// Makes and tries commands until there are enough of them.
    pub(super) fn run(mut self, options: &Options, tally: &Tally, start: &Instant) -> Result<()> {
        loop {
            let number = tally.made.fetch_add(1, Ordering::Relaxed);
            let enough = options.stop && !lock(&tally.findings).is_empty();
            if number >= options.count || enough {
                tally.timeouts.fetch_add(self.runner.n_timeouts as u64, Ordering::Relaxed);
                return Ok(());
            }
            let at = project_of(number, self.judges.len());
            let project = self.judges[at].0;
            let (command, settings) = if number % EDITS_AMONG == 8 {
                let command = generate::edit(options.seed, number, &self.root, project);
                let settings = self.judges[at].1.allowing_edits(&command);
                (command, settings)
            } else {
                let command = generate::command(options.seed, number, &self.root, project);
                let settings = self.settings(at, number, &command);
                (command, settings)
            };
            if settings.is_empty() || !tally.is_new(project, &command) {
                continue;
            }
            let seconds = start.elapsed().as_secs_f64();
            let failed = |harm| Finding {
                number,
                seconds,
                project,
                command: command.clone(),
                settings: settings.clone(),
                harm,
            };
            let harm = self
                .runner
                .run(project, &command, &settings)
                .with_context(|| format!("running {command:?}"))?;
            // Once more: a process that another command left behind may have done it.
            if !harm.is_empty() {
                let again = self.runner.run(project, &command, &settings)?;
                if !again.is_empty() {
                    self.report(failed(again), options, tally)?;
                }
            }
        }
    }

    /// In which settings the command runs without a question. Few are asked about in all of them: what the freest one
    /// refuses, the others should refuse, too.
    fn settings(&self, at: usize, number: u64, command: &str) -> Vec<Setting> {
        let judge = &self.judges[at].1;
        if judge.allows(command) || number.is_multiple_of(16) {
            judge.allowing(command)
        } else {
            Vec::new()
        }
    }

    fn report(&mut self, mut finding: Finding, options: &Options, tally: &Tally) -> Result<()> {
        let n_before = lock(&tally.findings).len();
        if n_before < options.show {
            finding = self.shrunk(finding)?;
            let Finding { number, seconds, project, command, settings, harm } = &finding;
            println!(
                "harm after {seconds:.1} s, command {number} of seed {}, in {project}:",
                options.seed
            );
            println!("    {command:?}");
            println!("    {}", harm.join(", "));
            println!("    allowed in: {}", names(settings));
        }
        lock(&tally.findings).push(finding);
        Ok(())
    }

    /// The shortest command found that is allowed and does harm.
    fn shrunk(&mut self, finding: Finding) -> Result<Finding> {
        let at = self.judges.iter().position(|(name, _)| *name == finding.project).unwrap_or(0);
        let mut shortest = finding.clone();
        let mut attempts_left = 300;
        let mut failure = None;
        shrink::shrink(finding.command.as_bytes(), |bytes| {
            let Ok(command) = std::str::from_utf8(bytes) else { return false };
            let settings = match finding.settings.iter().any(|setting| setting.edits) {
                true => self.judges[at].1.allowing_edits(command),
                false => self.judges[at].1.allowing(command),
            };
            if settings.is_empty() || attempts_left == 0 {
                return false;
            }
            attempts_left -= 1;
            match self.runner.run(finding.project, command, &settings) {
                Ok(harm) if !harm.is_empty() => {
                    shortest =
                        Finding { command: command.to_owned(), settings, harm, ..finding.clone() };
                    true
                }
                Ok(_) => false,
                Err(error) => {
                    failure = Some(error);
                    false
                }
            }
        });
        failure.map_or(Ok(shortest), Err)
    }
}

/// More than half of the commands run in the ordinary project, the others in the hostile clones by turns.
fn project_of(number: u64, n_projects: usize) -> usize {
    let n_hostile = n_projects.saturating_sub(1).max(1) as u64;
    if number % 8 < 5 { 0 } else { 1 + (number / 8 % n_hostile) as usize }
}
