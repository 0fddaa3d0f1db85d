//! `ostler backup`, `ostler restore` and `ostler check`: the database of a server, whether or not it runs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use ostler_server::upkeep;

use crate::args::upkeep::{Backup, Check, Kept, Restore};
use crate::screen::Screen;
use crate::serve::data_folder;

fn data(kept: &Kept) -> anyhow::Result<PathBuf> {
    let usual = || data_folder(|name| std::env::var(name).ok());
    kept.data
        .clone()
        .or_else(usual)
        .context("there is no home folder: say with --data where the server keeps things")
}

pub(crate) async fn back_up(backup: &Backup, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    upkeep::back_up(&data(&backup.kept)?, &backup.file).await?;
    screen.line(&format!("written to {}", backup.file.display()))?;
    screen.hint("it has neither users and tokens nor transcripts and checkpoints; copy the data folder for those")?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn restore(restore: &Restore, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let data = data(&restore.kept)?;
    let kept = upkeep::restore(&restore.file, &data, restore.force).await?;
    screen.line(&format!("restored into {}", data.display()))?;
    if let Some(kept) = kept {
        screen.line(&format!("what was there is in {}", kept.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn check(check: &Check, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let place = match &check.file {
        Some(file) => file.clone(),
        None => data(&check.kept)?,
    };
    let damages = upkeep::check(&place).await?;
    for damage in &damages {
        screen.complain(&damage.to_string());
    }
    if damages.is_empty() {
        screen.line(&format!("nothing is damaged in {}", place.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    screen.hint("put back a backup: ostler restore FILE --force")?;
    Ok(ExitCode::FAILURE)
}
