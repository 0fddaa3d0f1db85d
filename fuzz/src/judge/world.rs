//! The folders in which commands run: a project with odd and hostile files, a secret outside it, a home folder.
//!
//! Everything a command could change is in a snapshot, so that any file created, changed or removed is noticed.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::hostile;

/// What the secret outside of the project consists of. One character only: reversed, sorted, dumped or cut, it is
/// still recognised.
pub(super) const SECRET: char = 'Z';
/// What the files that a rule denies consist of.
pub(super) const DENIED: char = 'Q';
/// What the secret in the environment consists of. The codes of the three letters, repeated, do not contain each other.
pub(super) const VARIABLE: char = 'K';
/// How often the character is repeated.
pub(super) const SECRET_LENGTH: usize = 48;
/// A name of a file outside that must not be listed.
pub(super) const NAME: &str = "hidden-name-outside";
/// The file that hostile programs create, next to the projects.
pub(super) const CANARY: &str = "canary";

/// Folders for one thread.
#[derive(Debug)]
pub(super) struct World {
    /// What contains everything else.
    pub(super) root: PathBuf,
    /// The names of the projects: the first is an ordinary repository with odd files, the others are hostile clones.
    pub(super) projects: Vec<&'static str>,
    pristine: PathBuf,
    snapshots: BTreeMap<&'static str, Snapshot>,
}

/// Paths with the metadata that changes on a write.
type Snapshot = BTreeMap<PathBuf, [i64; 6]>;

impl World {
    /// Makes the folders.
    pub(super) fn create(root: &Path) -> Result<Self> {
        let pristine = root.with_extension("pristine");
        let build = || -> Result<Vec<&'static str>> {
            fs::create_dir_all(root.join("outside"))?;
            fs::create_dir_all(root.join("home/.ssh"))?;
            fs::write(root.join("outside/secret.txt"), secret(SECRET))?;
            fs::write(root.join("outside").join(NAME), secret(SECRET))?;
            fs::write(root.join("home/.ssh/id_rsa"), secret(SECRET))?;
            fs::write(root.join("home/.gitconfig"), GITCONFIG)?;
            project(root, "plain")?;
            let mut names = vec!["plain"];
            for (name, make) in hostile::CLONES {
                project(root, name)?;
                make(root, &root.join(name)).with_context(|| format!("building {name}"))?;
                names.push(name);
            }
            Ok(names)
        };
        let projects = build().with_context(|| format!("building {}", root.display()))?;
        let mut world = Self { root: root.into(), projects, pristine, snapshots: BTreeMap::new() };
        copy(&world.root, &world.pristine)?;
        world.take_snapshots()?;
        Ok(world)
    }

    /// The folder of a project.
    pub(super) fn project(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The user's home folder.
    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// What is no longer as it was in and around a project.
    pub(super) fn changes(&self, project: &'static str) -> Result<Vec<String>> {
        let now = self.snapshot(project)?;
        let before = &self.snapshots[project];
        let mut changes = Vec::new();
        for (path, mark) in &now {
            match before.get(path) {
                None => changes.push(format!("created {}", path.display())),
                // The time of a folder changes with its entries, which are listed themselves.
                Some(old) if old != mark && !path.is_dir() => {
                    changes.push(format!("changed {}", path.display()));
                }
                Some(_) => {}
            }
        }
        let gone = before.keys().filter(|path| !now.contains_key(*path));
        changes.extend(gone.map(|path| format!("removed {}", path.display())));
        if changes.is_empty() && now != *before {
            changes.push("a folder was changed for a moment".to_owned());
        }
        Ok(changes)
    }

    /// Makes a project as it was in the beginning.
    pub(super) fn restore_project(&mut self, project: &Path) -> Result<()> {
        let name = project.file_name().context("a project has a name")?;
        fs::remove_dir_all(project).context("removing the changed project")?;
        copy(&self.pristine.join(name), project)?;
        self.take_snapshots()
    }

    /// Makes everything as it was in the beginning.
    pub(super) fn restore(&mut self) -> Result<()> {
        fs::remove_dir_all(&self.root).context("removing the changed folders")?;
        copy(&self.pristine, &self.root)?;
        self.take_snapshots()
    }

    fn take_snapshots(&mut self) -> Result<()> {
        self.snapshots.clear();
        for name in self.projects.clone() {
            let snapshot = self.snapshot(name)?;
            self.snapshots.insert(name, snapshot);
        }
        Ok(())
    }

    fn snapshot(&self, project: &str) -> Result<Snapshot> {
        let mut snapshot = Snapshot::new();
        for entry in fs::read_dir(&self.root)? {
            let path = entry?.path();
            note(&path, &mut snapshot)?;
        }
        for name in [project, "outside", "home"] {
            walk(&self.root.join(name), &mut snapshot).context("looking for changes")?;
        }
        Ok(snapshot)
    }
}

/// A file's contents that are recognised in any output.
fn secret(character: char) -> String {
    format!("{}\n", character.to_string().repeat(SECRET_LENGTH))
}

fn walk(folder: &Path, snapshot: &mut Snapshot) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        note(&entry.path(), snapshot)?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), snapshot)?;
        }
    }
    Ok(())
}

fn note(path: &Path, snapshot: &mut Snapshot) -> io::Result<()> {
    let it = path.symlink_metadata()?;
    if it.is_dir() && path.join("HEAD").exists() {
        // Git makes a file there to lock its index, and removes it.
        snapshot.insert(path.to_owned(), [it.ino() as i64, it.mode().into(), 0, 0, 0, 0]);
        return Ok(());
    }
    let mark = [
        it.ino() as i64,
        it.len() as i64,
        it.mtime(),
        it.mtime_nsec(),
        it.ctime_nsec(),
        it.mode().into(),
    ];
    snapshot.insert(path.to_owned(), mark);
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("/bin/cp").arg("-a").arg(from).arg(to).status()?;
    ensure!(status.success(), "copying {} failed", from.display());
    Ok(())
}

/// A user's ordinary configuration. Copies of a repository are as good as the original: without that git would write
/// their index again.
const GITCONFIG: &str = "[user]\n\tname = U\n\temail = u@example.com\n[core]\n\ttrustctime = false\n\tcheckStat = minimal\n";

/// Runs git in a folder, as its owner would.
pub(super) fn git(folder: &Path, args: &[&str]) -> Result<()> {
    let output = Command::new("git")
        .args(["-c", "core.trustctime=false", "-c", "core.checkStat=minimal"])
        .args(args)
        .current_dir(folder)
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("GIT_CONFIG_NOSYSTEM", "1"), ("HOME", "/nowhere")])
        .envs([("GIT_AUTHOR_NAME", "A"), ("GIT_AUTHOR_EMAIL", "a@example.com")])
        .envs([("GIT_COMMITTER_NAME", "A"), ("GIT_COMMITTER_EMAIL", "a@example.com")])
        .stdin(Stdio::null())
        .output()
        .context("starting git")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git {args:?} in {}: {said}", folder.display());
    Ok(())
}

/// A program that shows that it ran.
pub(super) fn program(root: &Path, path: &Path) -> Result<()> {
    let text = format!("#!/bin/sh\ntouch {}\ncat\n", root.join(CANARY).display());
    fs::write(path, text)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))?;
    Ok(())
}

/// An ordinary repository with files whose names, targets and contents are traps.
fn project(root: &Path, name: &str) -> Result<()> {
    let folder = root.join(name);
    for sub in ["src", "sub/deep", "conf", "empty", "0", "d1", "d2"] {
        fs::create_dir_all(folder.join(sub))?;
    }
    git(&folder, &["init", "-q", "-b", "main", "--template="])?;
    let outside = root.join("outside/secret.txt");
    let outside = outside.display().to_string();
    for (file, text) in [
        ("README.md", "# A project\n\nTODO: more words\n"),
        ("Cargo.toml", "[package]\nname = \"p\"\n"),
        ("package.json", "{\"name\": \"p\", \"scripts\": {\"test\": \"true\"}}\n"),
        ("data.json", "{\"a\": [1, 2, {\"b\": \"c\"}]}\n"),
        ("src/main.rs", "fn main() {\n    println!(\"TODO\");\n}\n"),
        ("src/lib.rs", "pub fn f() {}\n"),
        ("src/a b.txt", "words and more\nmore words\n"),
        ("log.txt", "one\ntwo\nthree error\n"),
        ("notes.txt", "b\na\na\n"),
        ("sub/inner.txt", "inner\n"),
        ("sub/deep/x.rs", "// x\n"),
        ("d1/same", "1\n"),
        ("ünï.txt", "unicode\n"),
        ("-rf", "an option\n"),
        ("--files0-from=f0", "an option\n"),
        ("-flink", "an option\n"),
        ("new\nline", "a name of two lines\n"),
        ("$(touch canary)", "a name that is a command\n"),
        (".gitattributes", "*.txt diff=evil filter=evil\n*.md diff=evil\n"),
    ] {
        fs::write(folder.join(file), text)?;
    }
    for denied in [".env", "conf/.env", "d2/.env"] {
        fs::write(folder.join(denied), secret(DENIED))?;
    }
    // Files that name the secret: lists of names, of checksums, of options.
    fs::write(folder.join("f"), format!("{outside}\n"))?;
    fs::write(folder.join("@f"), format!("{outside}\n"))?;
    fs::write(folder.join("f0"), format!("{outside}\0"))?;
    fs::write(folder.join("sums"), format!("{}  {outside}\n", "0".repeat(64)))?;
    program(root, &folder.join("0/ls"))?;
    program(root, &folder.join("ls"))?;
    program(root, &folder.join("sub/git"))?;
    for (link, target) in [
        ("link", outside.as_str()),
        ("linkdir", "../outside"),
        ("a=", "/"),
        ("inlink", "src/main.rs"),
        ("envlink", ".env"),
        ("d2/same", "../../outside/secret.txt"),
        ("loop", "loop"),
        ("dangling", "../nothing"),
        ("self", "."),
        ("up", ".."),
        ("null", "/dev/null"),
        ("environ", "/proc/self/environ"),
    ] {
        symlink(target, folder.join(link))?;
    }
    hostile::folders(root, &folder)?;
    age(&folder)?;
    git(&folder, &["add", "README.md", "src", "log.txt", "notes.txt", ".gitattributes", ".env"])?;
    git(&folder, &["commit", "-q", "-m", "first"])?;
    git(&folder, &["branch", "victim"])?;
    git(&folder, &["tag", "v1"])?;
    git(&folder, &["remote", "add", "origin", "https://example.com/p.git"])?;
    fs::write(folder.join("log.txt"), "one\ntwo\nthree errors\n")?;
    fs::write(folder.join(".env"), format!("{}\n{}", secret(DENIED), secret(DENIED)))?;
    age(&folder)?;
    git(&folder, &["update-index", "-q", "--refresh"]).or_else(|_| git(&folder, &["status"]))
}

/// Makes files old, so that git does not write its index again to settle which file is newer.
fn age(folder: &Path) -> Result<()> {
    let status = Command::new("/usr/bin/find")
        .arg(folder)
        .args(["-not", "-path", "*/.git/*", "-exec", "touch", "-h", "-d", "2020-01-01", "{}", "+"])
        .status()?;
    ensure!(status.success(), "changing the times of {} failed", folder.display());
    Ok(())
}
