//! Keeping what the server keeps: checks and backups of the database, by a timer and by hand.
//!
//! A backup has what is in the database: sessions, runs, approvals, rules, schedules. It has neither tokens and users nor the
//! engine's transcripts and checkpoints, which are files of the data folder. They are not part of it because the database is
//! copied as of one moment, while engines append to their files at any time: a copy that belongs to the same moment needs the
//! engines to pause, or the transcripts to be in the store. Whoever wants to resume conversations after a restore also copies
//! `engine` of the data folder, while the server is stopped.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ostler_store::{Error, sqlite};

use crate::app::App;
use crate::confine::private;

/// Where in the data folder the database is.
pub(crate) const DATABASE: &str = "log";
/// Where in the data folder backups are written, unless the operator says otherwise.
const BACKUPS: &str = "backups";
/// How many backups of the timer are kept.
const KEPT: usize = 7;
/// How long after the start the first check is made, if not earlier.
const FIRST: Duration = Duration::from_secs(10 * 60);

/// Writes the database of a data folder to a file that must not exist yet, also while a server uses it.
///
/// # Errors
/// When there is no database, or the file cannot be written.
pub async fn back_up(data: &Path, to: &Path) -> Result<(), Error> {
    sqlite::back_up(&data.join(DATABASE), to).await
}

/// Looks at all of a backup, or of the database of a data folder. Returns what is damaged.
///
/// # Errors
/// When it cannot be read at all.
pub async fn check(place: &Path) -> Result<Vec<Error>, Error> {
    let place = if place.is_dir() { place.join(DATABASE) } else { place.to_owned() };
    sqlite::check(&place).await
}

/// Puts a backup in the place of the database of a data folder. Returns where what was there is kept.
///
/// # Errors
/// When a server uses the folder, when the backup is damaged, and without `force` when something is there.
pub async fn restore(from: &Path, data: &Path, force: bool) -> Result<Option<PathBuf>, Error> {
    sqlite::restore(from, &data.join(DATABASE), force).await
}

/// What the last check found.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    /// Milliseconds since 1970.
    pub(crate) at: u64,
    /// What is damaged, or why it could not be looked at.
    pub(crate) damages: Vec<String>,
}

/// What is known of checks and backups since the start.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    checked: Mutex<Option<Checked>>,
    /// The last backup, or why there is none.
    backed_up: Mutex<Option<Result<PathBuf, String>>>,
}

impl Upkeep {
    pub(crate) fn last_check(&self) -> Option<Checked> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn last_backup(&self) -> Option<Result<PathBuf, String>> {
        self.backed_up.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Checks the database every night, and backs it up if the operator wants that.
pub(crate) async fn tend(app: App) {
    let every = app.config.check_every;
    tokio::time::sleep(every.min(FIRST)).await;
    loop {
        check_now(&app).await;
        if app.config.backups.is_some() {
            // It is logged, and the doctor knows.
            let made = back_up_now(&app).await;
            let is_sound = app.upkeep.last_check().is_some_and(|check| check.damages.is_empty());
            // What is damaged now may be whole in the oldest one.
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
            "the database is damaged; `ostler restore FILE` puts back a backup"
        );
    }
    let checked = Checked { at: app.hub.clock.now(), damages };
    *app.upkeep.checked.lock().unwrap_or_else(PoisonError::into_inner) = Some(checked);
}

/// Writes a backup into the folder for them.
pub(crate) async fn back_up_now(app: &App) -> Result<PathBuf, Error> {
    let folder = app.config.backups.clone().unwrap_or_else(|| app.config.data.join(BACKUPS));
    let made = back_up_into(app, &folder).await;
    if let Err(error) = &made {
        tracing::error!(%error, "there is no backup");
    }
    let told = made.clone().map_err(|error| error.to_string());
    *app.upkeep.backed_up.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
    made
}

async fn back_up_into(app: &App, folder: &Path) -> Result<PathBuf, Error> {
    private::folder(folder).map_err(|error| Error::Failed {
        doing: format!("making the folder {}", folder.display()),
        why: error.to_string(),
    })?;
    let file = folder.join(format!("ostler-{:015}.db", app.hub.clock.now()));
    app.store.backup(&file).await?;
    Ok(file)
}

/// Of the backups beside this one, the newest stay.
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
