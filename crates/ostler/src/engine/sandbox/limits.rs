//! The limits of the settings, and those that depend on the disk.

use std::path::Path;

use ostler_sandbox::{BackendChoice, Limits};
use serde_json::Value;

/// Which part of what is free on a disk the commands of a session may use, if no setting says it.
const PART_OF_FREE: u64 = 2;

/// The limits of a session that works in a folder. A limit that the settings do not name has its usual value; `null` means
/// none.
///
/// # Errors
/// When a limit is unknown or not a number, or cannot be counted here.
pub(super) fn of(
    setting: Option<&Value>,
    backend: BackendChoice,
    folder: &Path,
) -> Result<Limits, String> {
    let setting = setting.filter(|value| !value.is_null());
    let mut limits: Limits = match setting {
        Some(value) => serde_json::from_value(value.clone())
            .map_err(|error| format!("sandbox.limits: {error}"))?,
        None => Limits::default(),
    };
    let free = Free::of(folder);
    for (name, most) in [("files", limits.files), ("session.files", limits.session.files)] {
        if most.is_some() && !free.counts_files {
            return Err(format!(
                "sandbox.limits.{name} cannot be enforced: the file system of {} does not count its files; remove it",
                folder.display()
            ));
        }
    }
    // Other backends count neither; there a limit that was requested is an error.
    let counts_disk = matches!(backend, BackendChoice::Auto | BackendChoice::Bubblewrap);
    if counts_disk && cfg!(target_os = "linux") {
        let is_named = |name: &str| {
            let session = setting.and_then(|limits| limits.get("session"));
            session.is_some_and(|session| session.get(name).is_some())
        };
        if !is_named("disk") {
            limits.session.disk = free.bytes.map(|free| free / PART_OF_FREE);
        }
        if !is_named("files") {
            limits.session.files = free.files.map(|free| free / PART_OF_FREE);
        }
    }
    Ok(limits)
}

/// What is free on the disk of a folder.
struct Free {
    bytes: Option<u64>,
    files: Option<u64>,
    counts_files: bool,
}

impl Free {
    fn of(folder: &Path) -> Self {
        let Ok(about) = rustix::fs::statvfs(folder) else {
            return Self { bytes: None, files: None, counts_files: false };
        };
        // Some file systems make room for files as they are made.
        let counts_files = about.f_files > 0;
        Self {
            bytes: Some(about.f_bavail.saturating_mul(about.f_frsize)),
            files: counts_files.then_some(about.f_favail),
            counts_files,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(setting: Option<&Value>, folder: &Path) -> Result<Limits, String> {
        of(setting, BackendChoice::Auto, folder)
    }

    // Mutants: a limit that the settings turn off has its usual value; without a setting there is no limit.
    #[test]
    fn the_disk_is_limited_to_half_of_what_is_free_unless_a_setting_says_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let usual = read(None, folder.path()).unwrap();
        let free = Free::of(folder.path());
        let about_half = |limit: Option<u64>, free: Option<u64>| {
            limit.unwrap().abs_diff(free.unwrap() / 2) < free.unwrap() / 4
        };
        assert!(about_half(usual.session.disk, free.bytes), "{usual:?}");
        assert!(about_half(usual.session.files, free.files), "{usual:?}");
        assert_eq!((usual.disk, usual.files), (None, None));
        let in_container = of(None, BackendChoice::Podman, folder.path()).unwrap();
        assert_eq!(in_container, Limits::default(), "it could not be enforced there");
        let set = json!({"memory": 5, "session": {"disk": 7, "files": null}});
        let limits = read(Some(&set), folder.path()).unwrap();
        assert_eq!((limits.session.disk, limits.session.files), (Some(7), None));
        assert_eq!((limits.memory, limits.processes), (Some(5), usual.processes));
        for (wrong, part) in [
            (json!({"session": {"procesess": 4}}), "procesess"),
            (json!({"session": {"fileSize": 4}}), "fileSize"),
            (json!({"disk": "much"}), "sandbox.limits"),
        ] {
            let error = read(Some(&wrong), folder.path()).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    // Mutant: it is accepted.
    #[test]
    fn files_that_a_file_system_does_not_count_cannot_be_limited() {
        // The file system of processes has no such number.
        let set = json!({"files": 5});
        let error = read(Some(&set), Path::new("/proc")).unwrap_err();
        assert!(error.contains("sandbox.limits.files cannot be enforced"), "{error}");
        let limits = read(None, Path::new("/proc")).unwrap();
        assert_eq!(limits.session.files, None);
    }
}
