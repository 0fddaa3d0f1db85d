//! A temporary configuration folder for an engine, with a session that was loaded from a store.
//!
//! It contains parts of the user's own folder (`~/.claude`), so that the engine finds its credentials and settings.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use ostler_process::Environment;
use serde_json::{Map, Value};

/// The variable that names the configuration folder.
const VARIABLE: &str = "CLAUDE_CONFIG_DIR";
/// Files and folders that the engine only reads. They are links to the user's own.
const LINKED: [&str; 5] = ["CLAUDE.md", "agents", "commands", "skills", "output-styles"];
/// Settings that are not copied. The folder has no installed plugins, so the engine would install them for every
/// session.
const LEFT_OUT: [&str; 2] = ["enabledPlugins", "extraKnownMarketplaces"];
/// The most bytes of a file that is copied.
const LONGEST_FILE: u64 = 16 * 1024 * 1024;

/// The folder. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct ConfigFolder {
    path: PathBuf,
    keeps_transcripts: AtomicBool,
}

impl ConfigFolder {
    /// Creates a folder that only this user can read, with the user's credentials and settings.
    pub(super) fn create(env: &Environment) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("ostler-resume-{}", uuid::Uuid::new_v4()));
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = Self { path, keeps_transcripts: AtomicBool::new(false) };
        folder.copy_from_user(env);
        Ok(folder)
    }

    /// The environment variable that makes an engine use the folder.
    pub(crate) fn variable(&self) -> (&'static str, String) {
        (VARIABLE, self.path.display().to_string())
    }

    /// The transcripts, each in the folder of its project.
    pub(super) fn transcripts(&self) -> PathBuf {
        self.path.join("projects")
    }

    /// Sets whether the transcripts stay when the folder is dropped, because the store lacks lines of them.
    pub(super) fn keep_transcripts(&self, keep: bool) {
        self.keeps_transcripts.store(keep, Ordering::Relaxed);
    }

    /// Writes a new file, and creates its folders.
    pub(super) fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(bytes)
    }

    /// Copies the user's files. A file that is missing or cannot be read is left out: the engine may authenticate in
    /// another way.
    fn copy_from_user(&self, env: &Environment) {
        let var = |name| env.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = var("HOME");
        let (config, claude_json) = match (var(VARIABLE), &home) {
            (Some(config), _) => (config.clone(), config.join(".claude.json")),
            // With the default configuration folder, this file is next to the folder and not in it.
            (None, Some(home)) => (home.join(".claude"), home.join(".claude.json")),
            (None, None) => return,
        };
        self.copy(&config.join(".credentials.json"), ".credentials.json", without_refresh_token);
        self.copy(&claude_json, ".claude.json", |_| false);
        for name in ["settings.json", "cowork_settings.json"] {
            self.copy(&config.join(name), name, without_plugins);
        }
        for name in LINKED {
            let Ok(original) = config.join(name).canonicalize() else { continue };
            if let Err(error) = symlink(&original, self.path.join(name)) {
                tracing::warn!(path = %original.display(), %error, "left out of a resumed session");
            }
        }
    }

    /// Copies a file. `change` edits the JSON object in it and returns whether it changed anything. A file that is not
    /// a JSON object is copied unchanged.
    fn copy(&self, from: &Path, name: &str, change: fn(&mut Map<String, Value>) -> bool) {
        let copied = read(from).and_then(|bytes| {
            let Some(bytes) = bytes else { return Ok(()) };
            let json = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
            let object = serde_json::from_slice(json).ok();
            let changed = object.and_then(|mut object| change(&mut object).then_some(object));
            let bytes = match changed {
                Some(object) => serde_json::to_vec(&object)?,
                None => bytes,
            };
            self.write(&self.path.join(name), &bytes)
        });
        if let Err(error) = copied {
            tracing::warn!(path = %from.display(), %error, "left out of a resumed session");
        }
    }
}

/// The bytes of a regular file; `None` if there is no file.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(meta) if !meta.is_file() => return Err(io::Error::other("it is not a regular file")),
        Ok(meta) if meta.len() > LONGEST_FILE => return Err(io::Error::other("it is too long")),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(LONGEST_FILE).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Removes the refresh token. It can be used only once, and the engine would write its successor to a folder that is
/// removed later, so the user would be logged out.
fn without_refresh_token(credentials: &mut Map<String, Value>) -> bool {
    let oauth = credentials.get_mut("claudeAiOauth").and_then(Value::as_object_mut);
    oauth.is_some_and(|oauth| oauth.shift_remove("refreshToken").is_some())
}

fn without_plugins(settings: &mut Map<String, Value>) -> bool {
    let mut has_changed = false;
    for name in LEFT_OUT {
        has_changed |= settings.shift_remove(name).is_some();
    }
    // The variable would make the engine use the user's folder.
    if let Some(env) = settings.get_mut("env").and_then(Value::as_object_mut) {
        has_changed |= env.shift_remove(VARIABLE).is_some();
    }
    has_changed
}

impl Drop for ConfigFolder {
    fn drop(&mut self) {
        let keeps = self.keeps_transcripts.load(Ordering::Relaxed).then(|| self.transcripts());
        let removed = match keeps {
            None => fs::remove_dir_all(&self.path),
            Some(transcripts) => remove_all_but(&self.path, &transcripts),
        };
        if let Err(error) = removed {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove a temporary folder");
        }
    }
}

fn remove_all_but(folder: &Path, exception: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path() == exception {
            continue;
        }
        // Removes a link and not its target.
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user_folder() -> (tempfile::TempDir, Environment) {
        let home = tempfile::tempdir().unwrap();
        let config = home.path().join(".claude");
        fs::create_dir_all(config.join("skills/mine")).unwrap();
        let write = |name: &str, value: Value| {
            fs::write(home.path().join(name), value.to_string()).unwrap();
        };
        let oauth = json!({"accessToken": "a", "refreshToken": "r"});
        write(".claude/.credentials.json", json!({"claudeAiOauth": oauth}));
        write(
            ".claude/settings.json",
            json!({"model": "m", "enabledPlugins": {"p": true}, "env": {"CLAUDE_CONFIG_DIR": "/x", "A": "1"}}),
        );
        write(".claude.json", json!({"userID": "u"}));
        fs::write(config.join("skills/mine/SKILL.md"), "skill").unwrap();
        let variables = [("HOME", home.path().display().to_string())];
        let env = Environment { replaces: true, ..Environment::from(variables) };
        (home, env)
    }

    #[test]
    fn credentials_and_settings_are_copied_without_refresh_token_and_plugins() {
        let (_home, env) = user_folder();
        let folder = ConfigFolder::create(&env).unwrap();
        let json = |name: &str| -> Value {
            serde_json::from_slice(&fs::read(folder.path.join(name)).unwrap()).unwrap()
        };
        assert_eq!(json(".credentials.json"), json!({"claudeAiOauth": {"accessToken": "a"}}));
        assert_eq!(json("settings.json"), json!({"model": "m", "env": {"A": "1"}}));
        assert_eq!(json(".claude.json"), json!({"userID": "u"}));
        let skill = fs::read_to_string(folder.path.join("skills/mine/SKILL.md")).unwrap();
        assert_eq!(skill, "skill");
        assert!(
            !folder.path.join("agents").exists(),
            "a folder that the user does not have is not created"
        );
    }

    #[test]
    fn the_folder_is_private_and_removing_it_leaves_the_targets_of_its_links() {
        use std::os::unix::fs::PermissionsExt as _;
        let (home, env) = user_folder();
        let folder = ConfigFolder::create(&env).unwrap();
        let mode =
            |name: &str| fs::metadata(folder.path.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(""), mode(".credentials.json")), (0o700, 0o600));
        let path = folder.path.clone();
        drop(folder);
        assert!(!path.exists());
        assert!(home.path().join(".claude/skills/mine/SKILL.md").exists());
    }

    #[test]
    fn transcripts_that_are_not_stored_stay_and_credentials_do_not() {
        let (home, env) = user_folder();
        let folder = ConfigFolder::create(&env).unwrap();
        let transcript = folder.transcripts().join("p/s.jsonl");
        folder.write(&transcript, b"{}\n").unwrap();
        folder.keep_transcripts(true);
        let path = folder.path.clone();
        drop(folder);
        assert_eq!(fs::read(&transcript).unwrap(), b"{}\n");
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
        assert!(home.path().join(".claude/skills/mine/SKILL.md").exists());
        fs::remove_dir_all(path).unwrap();
    }
}
