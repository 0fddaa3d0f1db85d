//! Checks the database every night, and backs it up.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ostler_base::private;
use ostler_store::Error;

use crate::app::App;
use crate::upkeep::Checked;

/// The default folder for backups, in the data folder.
const BACKUPS: &str = "backups";
/// How many regular backups stay.
const KEPT: usize = 7;
/// How long after the start the first check is made at the latest.
const FIRST: Duration = Duration::from_secs(10 * 60);

/// Checks the database every night, and backs it up if the operator configured that.
pub async fn tend(app: App) {
    let every = app.config.check_every;
    tokio::time::sleep(every.min(FIRST)).await;
    loop {
        check_now(&app).await;
        if app.config.backups.is_some() {
            // A failure is logged, and the doctor reports it.
            let made = back_up_now(&app).await;
            let is_sound = app.upkeep.last_check().is_some_and(|check| check.damages.is_empty());
            // If the database is damaged, the oldest backup may be the last intact one.
            if let (Ok(file), true) = (made, is_sound) {
                remove_older(&file);
            }
        }
        tokio::time::sleep(every).await;
    }
}

async fn check_now(app: &App) {
    let damages = match app.store.examine().await {
        Ok(damages) => damages.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    };
    for damage in &damages {
        tracing::error!(
            damage,
            "the database is damaged; restore a backup with `ostler restore FILE`"
        );
    }
    let checked = Checked { at: app.sessions.clock.now(), damages };
    app.upkeep.note_check(checked);
}

/// Writes a backup into the folder for backups.
pub async fn back_up_now(app: &App) -> Result<PathBuf, Error> {
    let folder = app.config.backups.clone().unwrap_or_else(|| app.config.data.join(BACKUPS));
    let made = back_up_into(app, &folder).await;
    if let Err(error) = &made {
        tracing::error!(%error, "the backup could not be written");
    }
    app.upkeep.note_backup(made.clone().map_err(|error| error.to_string()));
    made
}

async fn back_up_into(app: &App, folder: &Path) -> Result<PathBuf, Error> {
    private::folder(folder).map_err(|error| Error::Failed {
        doing: format!("making the folder {}", folder.display()),
        why: error.to_string(),
    })?;
    let file = folder.join(format!("ostler-{:015}.db", app.sessions.clock.now()));
    app.store.backup(&file).await?;
    Ok(file)
}

/// Removes all but the newest backups in the folder of this one.
fn remove_older(newest: &Path) {
    let Some(entries) = newest.parent().and_then(|folder| std::fs::read_dir(folder).ok()) else {
        return;
    };
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = name.strip_prefix("ostler-").and_then(|rest| rest.strip_suffix(".db"));
        number.is_some_and(|it| it.len() == 15 && it.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut files: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_ours).collect();
    files.sort();
    let older = files.len().saturating_sub(KEPT);
    for file in &files[..older] {
        if let Err(error) = std::fs::remove_file(file) {
            tracing::warn!(file = %file.display(), %error, "an old backup could not be removed");
        }
    }
}
