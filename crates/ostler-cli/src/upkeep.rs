//! `ostler backup`, `ostler restore` and `ostler check`, for the database of a running or stopped server.

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
        .context("there is no home folder: name the server's data folder with --data")
}

pub(crate) async fn back_up(backup: &Backup, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    upkeep::back_up(&data(&backup.kept)?, &backup.file).await?;
    screen.line(&format!("written to {}", backup.file.display()))?;
    screen.hint("users, tokens, transcripts and checkpoints are not in it; copy the data folder to back them up")?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn restore(restore: &Restore, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let data = data(&restore.kept)?;
    let kept = upkeep::restore(&restore.file, &data, restore.force).await?;
    screen.line(&format!("restored into {}", data.display()))?;
    if let Some(kept) = kept {
        screen.line(&format!("the old database is in {}", kept.display()))?;
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
        screen.line(&format!("no damage found in {}", place.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    screen.hint("restore a backup: ostler restore FILE --force")?;
    Ok(ExitCode::FAILURE)
}
