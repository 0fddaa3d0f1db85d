//! Paths from outside, resolved below a folder of the server: component by component, and not through links that lead
//! out.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use ostler_files::RealPath;

/// The path below the folder with links resolved. It must still be below the folder. A caller that opens it afterwards
/// has to trust everyone who can write there; other callers use [`open_beneath`].
///
/// # Errors
/// When the path does not exist, or leads out of the folder.
pub fn confined(folder: &Path, path: &Path) -> io::Result<PathBuf> {
    let folder = folder.canonicalize()?;
    let real = folder.join(path).canonicalize()?;
    // Compared by components: `/skills-old` is not in `/skills`.
    if real.starts_with(&folder) { Ok(real) } else { Err(leads_out(path)) }
}

/// Opens a file below a folder for reading. No component leads out, even while another process changes the path: links
/// that are there are followed if they stay in the folder, and one that appears meanwhile is refused.
///
/// # Errors
/// When the path does not exist, is not a file, or leads out of the folder.
pub fn open_beneath(folder: &Path, path: &Path) -> io::Result<File> {
    let real = RealPath::from_resolved(confined(folder, path)?);
    real.ok_or_else(|| leads_out(path))?.open()
}

fn leads_out(path: &Path) -> io::Error {
    let text = format!("{} leads out of its folder", path.display());
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    /// `root/skills` with a file, links to other places, and a folder next to it whose name has the same beginning.
    fn house() -> (tempfile::TempDir, PathBuf) {
        let house = tempfile::tempdir().unwrap();
        let skills = house.path().join("skills");
        std::fs::create_dir_all(skills.join("inner")).unwrap();
        std::fs::create_dir(house.path().join("skills-old")).unwrap();
        std::fs::write(house.path().join("secret"), "secret").unwrap();
        std::fs::write(house.path().join("skills-old/file"), "secret").unwrap();
        std::fs::write(skills.join("inner/file"), "own").unwrap();
        symlink("inner/file", skills.join("near")).unwrap();
        symlink("../secret", skills.join("far")).unwrap();
        symlink(house.path().join("secret"), skills.join("absolute")).unwrap();
        symlink("..", skills.join("up")).unwrap();
        symlink("/proc/self/root", skills.join("magic")).unwrap();
        symlink("loop", skills.join("loop")).unwrap();
        (house, skills)
    }

    // Seen to fail with `confined` that compares texts, and that compares nothing.
    #[test]
    fn no_component_of_a_path_leads_out() {
        let (_house, skills) = house();
        let read = |path: &str| {
            let mut text = String::new();
            open_beneath(&skills, Path::new(path))?.read_to_string(&mut text)?;
            Ok::<_, io::Error>(text)
        };
        for path in ["inner/file", "near"] {
            assert_eq!(read(path).unwrap(), "own");
            assert!(confined(&skills, Path::new(path)).unwrap().ends_with("inner/file"));
        }
        for path in [
            "far",
            "absolute",
            "up/secret",
            "up/skills-old/file",
            "../skills-old/file",
            "magic/etc/hostname",
            "loop",
            "none",
        ] {
            assert!(read(path).is_err(), "{path}");
            assert!(confined(&skills, Path::new(path)).is_err(), "{path}");
        }
        assert!(read("inner").is_err(), "a folder is not a file");
    }

    // Mutant: `open_beneath` opens the checked path by `File::open`.
    #[test]
    fn a_file_that_is_swapped_for_a_link_meanwhile_is_not_opened() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use std::sync::atomic::{AtomicBool, Ordering};

        let (_house, skills) = house();
        let is_over = AtomicBool::new(false);
        let (mut n_own, mut n_escapes) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (one, other) = (skills.join("inner/file"), skills.join("absolute"));
                while !is_over.load(Ordering::Relaxed) {
                    renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                }
            });
            for _ in 0..4_000 {
                let mut text = String::new();
                let read = open_beneath(&skills, Path::new("inner/file"))
                    .and_then(|mut file| file.read_to_string(&mut text));
                n_own += usize::from(read.is_ok() && text == "own");
                n_escapes += usize::from(text == "secret");
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(n_escapes, 0, "of 4,000 tries, {n_own} of which opened the file");
        assert!(n_own > 0);
    }
}
