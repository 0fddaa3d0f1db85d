//! Repositories whose configuration runs programs: what a stranger can put into a clone or an archive.

use std::fs;
use std::path::Path;

use anyhow::Result;

use super::world::{CANARY, git, program};

/// Makes a project hostile. Gets what contains the project, and the project.
type Make = fn(&Path, &Path) -> Result<()>;

/// Hostile variants of the project.
pub(super) const CLONES: &[(&str, Make)] = &[
    ("fsmonitor", |root, folder| config(folder, "core.fsmonitor", &touch(root))),
    ("external", |root, folder| config(folder, "diff.external", &script(root, folder)?)),
    ("textconv", |root, folder| {
        config(folder, "diff.evil.textconv", &script(root, folder)?)?;
        config(folder, "diff.evil.command", &script(root, folder)?)
    }),
    ("filter", |root, folder| {
        config(folder, "filter.evil.clean", &script(root, folder)?)?;
        config(folder, "filter.evil.process", &script(root, folder)?)
    }),
    ("pager", |root, folder| {
        config(folder, "core.pager", &touch(root))?;
        config(folder, "pager.log", &touch(root))?;
        config(folder, "pager.status", &touch(root))
    }),
    ("gpg", |root, folder| {
        config(folder, "log.showSignature", "true")?;
        config(folder, "gpg.program", &script(root, folder)?)?;
        sign(folder)
    }),
    ("include", |root, folder| {
        fs::write(folder.join(".git/more"), format!("[core]\n\tfsmonitor = {}\n", touch(root)))?;
        append(folder, ".git/config", "[include]\n\tpath = more\n")
    }),
    ("oddconfig", |root, folder| {
        // Another case, a comment, a section that is opened twice, a key on the line of its section.
        let text = format!("[CORE] ; x\n# y\n[core]FSMonitor=\"{}\"\n", touch(root));
        append(folder, ".git/config", &text)
    }),
    ("worktreeconfig", |root, folder| {
        append(folder, ".git/config", "[extensions]\n\tworktreeConfig = true\n")?;
        fs::write(
            folder.join(".git/config.worktree"),
            format!("[core]\n\tfsmonitor = {}\n", touch(root)),
        )?;
        Ok(())
    }),
    ("commondir", |root, folder| {
        fs::create_dir(folder.join("common"))?;
        for name in ["objects", "refs"] {
            fs::rename(folder.join(".git").join(name), folder.join("common").join(name))?;
        }
        fs::rename(folder.join(".git/config"), folder.join("common/config"))?;
        append(folder, "common/config", &format!("[core]\n\tfsmonitor = {}\n", touch(root)))?;
        fs::write(folder.join(".git/commondir"), "../common\n")?;
        Ok(())
    }),
    ("gitfile", |root, folder| {
        fs::rename(folder.join(".git"), folder.join("hidden"))?;
        fs::write(folder.join(".git"), "gitdir: hidden\n")?;
        append(folder, "hidden/config", &format!("[core]\n\tfsmonitor = {}\n", touch(root)))
    }),
    ("gitlink", |_, folder| {
        // The repository lies outside of the project.
        fs::rename(folder.join(".git"), folder.join("../outside/repository"))?;
        fs::write(folder.join(".git"), "gitdir: ../outside/repository\n")?;
        Ok(())
    }),
    ("worktree", |root, folder| {
        config(folder, "core.worktree", &root.join("outside").display().to_string())
    }),
    ("alternates", |root, folder| {
        let outside = root.join("outside/objects");
        fs::create_dir_all(&outside)?;
        fs::create_dir_all(folder.join(".git/objects/info"))?;
        fs::write(folder.join(".git/objects/info/alternates"), format!("{}\n", outside.display()))?;
        Ok(())
    }),
    ("hooks", |root, folder| {
        let hooks = folder.join(".git/hooks");
        fs::create_dir_all(&hooks)?;
        for name in
            ["post-index-change", "fsmonitor-watchman", "post-checkout", "reference-transaction"]
        {
            program(root, &hooks.join(name))?;
        }
        // Git looks at the file again, finds it unchanged and writes its index, which is what a hook waits for.
        fs::write(folder.join("README.md"), fs::read(folder.join("README.md"))?)?;
        Ok(())
    }),
    ("aliases", |root, folder| {
        config(folder, "alias.st", &format!("!{}", touch(root)))?;
        config(folder, "alias.lg", &format!("!{}", touch(root)))
    }),
    ("submodule", |root, folder| {
        // A gitlink in the index: `git status` starts git inside of it.
        let embedded = folder.join("embedded");
        fs::write(
            folder.join(".gitmodules"),
            "[submodule \"embedded\"]\n\tpath = embedded\n\turl = ./e\n",
        )?;
        git(folder, &["-c", "core.fsmonitor=false", "add", "-f", "embedded"])?;
        git(folder, &["commit", "-q", "-m", "embedded"])?;
        config(&embedded, "core.fsmonitor", &touch(root))
    }),
];

/// Hostile repositories in folders of a project that is itself an ordinary one.
pub(super) fn folders(root: &Path, folder: &Path) -> Result<()> {
    let bare = folder.join("bare");
    fs::create_dir(&bare)?;
    git(&bare, &["init", "-q", "--bare", "--template="])?;
    append(&bare, "config", &evil(root, folder)?)?;
    // A bare layout whose configuration lies elsewhere.
    let evil_folder = folder.join("evil");
    fs::create_dir_all(evil_folder.join("real/refs/heads"))?;
    git(&evil_folder.join("real"), &["init", "-q", "--bare", "--template="])?;
    append(&evil_folder, "real/config", &evil(root, folder)?)?;
    fs::write(evil_folder.join("HEAD"), "ref: refs/heads/main\n")?;
    fs::write(evil_folder.join("commondir"), "real\n")?;
    let embedded = folder.join("embedded");
    fs::create_dir(&embedded)?;
    git(&embedded, &["init", "-q", "-b", "main", "--template="])?;
    fs::write(embedded.join("e.txt"), "e\n")?;
    git(&embedded, &["add", "e.txt"])?;
    git(&embedded, &["commit", "-q", "-m", "e"])?;
    append(&embedded, ".git/config", &evil(root, folder)?)?;
    fs::create_dir(folder.join("filed"))?;
    fs::write(folder.join("filed/.git"), "gitdir: ../evil/real\n")?;
    Ok(())
}

/// Configuration that runs a program whatever git is asked.
fn evil(root: &Path, folder: &Path) -> Result<String> {
    let script = script(root, folder)?;
    Ok(format!(
        "[core]\n\tfsmonitor = {touch}\n\tpager = {touch}\n\tbare = false\n\
         [diff]\n\texternal = {script}\n[diff \"evil\"]\n\ttextconv = {script}\n",
        touch = touch(root)
    ))
}

fn touch(root: &Path) -> String {
    format!("touch {}", root.join(CANARY).display())
}

/// A program in the project.
fn script(root: &Path, folder: &Path) -> Result<String> {
    let path = folder.join("tool");
    program(root, &path)?;
    Ok(path.display().to_string())
}

fn config(folder: &Path, key: &str, value: &str) -> Result<()> {
    git(folder, &["config", key, value])
}

fn append(folder: &Path, file: &str, text: &str) -> Result<()> {
    let path = folder.join(file);
    let old = fs::read_to_string(&path)?;
    fs::write(path, old + text)?;
    Ok(())
}

/// Gives the last commit something that looks like a signature, which git has checked by a program.
fn sign(folder: &Path) -> Result<()> {
    let status = std::process::Command::new("/bin/bash")
        .args(["-c", SIGN])
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .status()?;
    anyhow::ensure!(status.success(), "signing a commit failed");
    Ok(())
}

const SIGN: &str = r#"
signature='gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----'
commit=$(git cat-file commit HEAD | sed "s/^committer .*/&\n$signature/" | git hash-object -t commit -w --stdin)
git update-ref refs/heads/main "$commit"
"#;
