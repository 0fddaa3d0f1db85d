//! Runs commands that need no approval, and attacks them: neither a variable of their environment nor a change after the
//! permission decision makes them start another program. Each attack also runs with a rule that allows all of Bash, where
//! it must succeed; otherwise the test would prove nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ostler::options::SettingSource;
use ostler::{Options, PermissionMode, query};
use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;

/// A temporary folder with a home and a repository whose programs create a canary file.
struct Bench {
    folder: tempfile::TempDir,
}

const GIT_CONFIG: &str = "[core]\n\tbare = false\n";

impl Bench {
    fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        for folder in ["home/.claude", "project/bin", "project/grep", "project/fake/git"] {
            fs::create_dir_all(bench.path(folder)).unwrap();
        }
        let evil = format!("#!/bin/sh\n/bin/touch {}\n", bench.canary().display());
        for program in ["evil", "bin/ls", "grep/grep"] {
            bench.write(program, &evil);
            let executable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(bench.path("project").join(program), executable).unwrap();
        }
        bench.write("env.sh", &format!("/bin/touch {}\n", bench.canary().display()));
        let program = bench.path("project/evil");
        let config =
            format!("[core]\n\tfsmonitor = {0}\n[diff]\n\texternal = {0}\n", program.display());
        bench.write("fake/.gitconfig", &config);
        bench.write("fake/git/config", &config);
        bench.write("tracked", "a\n");
        bench.git("project", &["init", "-q"]);
        bench.git("project", &["add", "tracked"]);
        bench.git("project", &["commit", "-q", "-m", "x"]);
        bench.write(".git/config", GIT_CONFIG);
        bench.write("tracked", "b\n");
        bench.git(".", &["init", "-q", "elsewhere"]);
        fs::write(bench.path("elsewhere/.git/config"), config).unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn canary(&self) -> PathBuf {
        self.path("canary")
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path("project").join(name), text).unwrap();
    }

    fn git(&self, folder: &str, words: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
        let output = command.current_dir(self.path(folder)).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A variable's value in which `%` stands for the project and `#` for the canary.
    fn fill(&self, value: &str) -> String {
        let (project, canary) = (self.path("project"), self.canary());
        let project = project.display().to_string();
        value.replace('%', &project).replace('#', &canary.display().to_string())
    }

    /// A session in the project, which the user trusts.
    fn options(&self, api: &ScriptedApi, mode: PermissionMode) -> Options {
        let mut options = ostler::options()
            .cwd(self.path("project"))
            .env("HOME", self.path("home").display().to_string())
            .env("PATH", std::env::var("PATH").unwrap())
            .env("ANTHROPIC_BASE_URL", api.base_url())
            .env("ANTHROPIC_API_KEY", "test")
            .permission_mode(mode);
        options.engine.env.replaces = true;
        options.context.setting_sources = vec![SettingSource::User, SettingSource::Project];
        options
    }

    /// Whether a command creates the canary file.
    async fn runs(&self, command: &str, change: impl FnOnce(Options) -> Options) -> bool {
        let _ = fs::remove_file(self.canary());
        let script = Script::new()
            .rule(when().turn(0), reply().tool_use("Bash", json!({"command": command})))
            .rule(when(), reply().text("Done."));
        let api = ScriptedApi::start(script).await;
        let mut query = query("go", change(self.options(&api, PermissionMode::Default)));
        while let Some(message) = query.next().await {
            message.unwrap();
        }
        self.canary().exists()
    }
}

/// Variables, and a command that is harmless without them.
const VARIABLES: &[(&[(&str, &str)], &str)] = &[
    (&[("BASH_ENV", "%/env.sh")], "ls"),
    (&[("BASH_FUNC_ls%%", "() { /bin/touch #; }")], "ls"),
    (&[("BASH_FUNC_echo%%", "() { /bin/touch #; }")], "echo hi"),
    (&[("BASH_FUNC_trap%%", "() { /bin/touch #; }")], "pwd"),
    (&[("PATH", "%/bin:/usr/bin:/bin")], "ls"),
    (&[("PATH", "bin:/usr/bin:/bin")], "ls"),
    (&[("PATH", "%/grep:/usr/bin:/bin")], "egrep a tracked"),
    (&[("GIT_EXTERNAL_DIFF", "%/evil")], "git diff"),
    (&[("GIT_DIR", "%/../elsewhere/.git"), ("GIT_WORK_TREE", "%")], "git status"),
    (
        &[
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
            ("GIT_CONFIG_VALUE_0", "%/evil"),
        ],
        "git status",
    ),
    (&[("GIT_CONFIG_GLOBAL", "%/fake/.gitconfig")], "git diff"),
    (&[("HOME", "%/fake")], "git diff"),
    (&[("XDG_CONFIG_HOME", "%/fake")], "git diff"),
    (&[("GIT_TRACE", "#")], "git status"),
];

// Seen to fail when `reduced` keeps every variable: 10 canaries. Mutant: the judge looks at this process's own environment.
#[tokio::test]
async fn no_variable_makes_a_harmless_command_start_another_program() {
    let mut failed = Vec::new();
    for (variables, command) in VARIABLES {
        let bench = Bench::new();
        let filled: Vec<(String, String)> = variables
            .iter()
            // The name of an exported function ends with `%%`.
            .map(|(name, value)| ((*name).to_owned(), bench.fill(value)))
            .collect();
        let by_host = |mut options: Options| {
            options.engine.env.variables.extend(filled.clone());
            options
        };
        let allowing = |options: Options| by_host(options).allow(["Bash"]);
        assert!(
            bench.runs(command, allowing).await,
            "the attack has no effect: {variables:?} {command}"
        );
        if bench.runs(command, by_host).await {
            failed.push(format!("host: {variables:?} {command}"));
        }
        // The same variables in the user's settings; not for `HOME`, which decides where the settings are.
        if !variables.iter().any(|(name, _)| *name == "HOME") {
            let env: serde_json::Map<_, _> =
                filled.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            let settings = json!({ "env": env }).to_string();
            fs::write(bench.path("home/.claude/settings.json"), settings).unwrap();
            if bench.runs(command, |options| options).await {
                failed.push(format!("settings: {variables:?} {command}"));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

// Seen to fail when `is_of_the_system` looks only at programs that are there already.
#[tokio::test]
async fn a_command_does_not_put_a_program_on_the_search_path_and_start_it() {
    let bench = Bench::new();
    let command = "cp evil bin/rev && rev tracked";
    let with_path = |mut options: Options| {
        let path = bench.fill("%/bin:/usr/bin:/bin");
        options.engine.env.variables.insert("PATH".to_owned(), path);
        options.permission_mode(PermissionMode::AcceptEdits)
    };
    assert!(!bench.runs(command, with_path).await);
    let is_effective = bench.runs(command, |options| with_path(options).allow(["Bash"])).await;
    assert!(is_effective, "the attack has no effect");
}

/// Changes the repository after the permission decision, while the command runs.
fn change_repository(project: &Path, change: &str) {
    let program = project.join("evil").display().to_string();
    match change {
        "fsmonitor" => {
            let config = format!("{GIT_CONFIG}\tfsmonitor = {program}\n");
            fs::write(project.join(".git/config"), config).unwrap();
        }
        "hook" => {
            fs::create_dir_all(project.join(".git/hooks")).unwrap();
            fs::copy(project.join("evil"), project.join(".git/hooks/post-index-change")).unwrap();
            fs::write(project.join("tracked"), "a\n").unwrap();
        }
        _ => {
            fs::create_dir_all(project.join("hooks")).unwrap();
            fs::copy(project.join("evil"), project.join("hooks/post-index-change")).unwrap();
            let config = format!("{GIT_CONFIG}\thooksPath = {}\n", project.join("hooks").display());
            fs::write(project.join(".git/config"), config).unwrap();
            fs::write(project.join("tracked"), "a\n").unwrap();
        }
    }
}

// Seen to fail when `reduced` has no settings for git.
#[tokio::test]
async fn a_repository_that_changes_after_the_judgement_starts_nothing() {
    for change in ["fsmonitor", "hook", "hooksPath"] {
        for is_allowed in [true, false] {
            let bench = Bench::new();
            let fifo = bench.path("project/fifo");
            let status = Command::new("mkfifo").arg(&fifo).status().unwrap();
            assert!(status.success());
            let project = bench.path("project");
            // The command waits at the pipe: the permission decision was made, and git has not started.
            let changed = std::thread::spawn(move || {
                let _pipe = fs::OpenOptions::new().write(true).open(fifo).unwrap();
                change_repository(&project, change);
            });
            let allow = |options: Options| match is_allowed {
                true => options.allow(["Bash"]),
                false => options,
            };
            let left = bench.runs("cat fifo && git status", allow).await;
            assert!(changed.is_finished(), "{change}: the command was not run");
            changed.join().unwrap();
            assert_eq!(left, is_allowed, "{change}, a rule for Bash: {is_allowed}");
        }
    }
}
