//! Commands that once ran without approval, or got around a rule: each must require approval in every mode.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use tempfile::TempDir;

use super::*;

const MODES: [PermissionMode; 4] = [
    PermissionMode::Default,
    PermissionMode::Plan,
    PermissionMode::DontAsk,
    PermissionMode::AcceptEdits,
];

fn git(folder: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]);
    let output = command.args(words).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A folder with files and an ordinary repository.
fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["src", "sub", "conf"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    for name in ["a.txt", "src/main.rs", "sub/b.txt", ".env", "conf/.env"] {
        fs::write(folder.path().join(name), "x\n").unwrap();
    }
    git(folder.path(), &["init", "-q"]);
    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "-q", "-m", "x"]);
    folder
}

/// Checks that no mode runs any of the commands without approval.
fn never_free(cwd: &Path, rules: &[&str], commands: &[&str]) {
    let mut free = Vec::new();
    for mode in MODES {
        let policy = policy(cwd, mode.clone(), rules);
        let is_free = |command: &&&str| outcome(&policy, "Bash", command) == "allow";
        free.extend(commands.iter().filter(is_free).map(|command| format!("{mode}: {command}")));
    }
    assert!(free.is_empty(), "these run without approval:\n{}", free.join("\n"));
}

// Mutant: the judge of commit 345b17e, which allowed 24 of these.
#[test]
fn commands_in_which_the_shell_evaluates_expressions_require_approval() {
    let project = project();
    never_free(
        project.path(),
        &[],
        &[
            // Variables with the integer attribute.
            "RANDOM='a[$(touch p)]'; ls",
            "OPTIND='a[$(touch p)]'; ls",
            "HISTCMD='a[$(touch p)]'; ls",
            "SRANDOM='a[$(touch p)]'; ls",
            "RANDOM+='a[$(touch p)]'; ls",
            "RANDOM='a[$(touch p)]' ls",
            "for RANDOM in 'a[$(touch p)]'; do ls; done",
            "read RANDOM <<< 'a[$(touch p)]'",
            "echo 'a[$(touch p)]' | while read RANDOM; do ls; done",
            // Indices of compound arrays.
            "x='b[$(touch p)]'; a=([x]=1)",
            "a=(['b[$(touch p)]']=1)",
            "x='b[$(touch p)]'; a=([$x]=1)",
            "x='b[$(touch p)]'; a+=([x]=1)",
            // Quotes within double quotes and here-documents.
            "echo \"${x:-'$(touch p)'}\"",
            "echo \"${x-'$(touch p)'}\"",
            "echo \"${HOME:+'$(touch p)'}\"",
            "echo \"${HOME+'$(touch p)'}\"",
            "echo \"${x='$(touch p)'}\"",
            "echo \"${x:='$(touch p)'}\"",
            "echo \"${x:-'`touch p`'}\"",
            "echo \"${x:-$'$(touch p)'}\"",
            "cat <<< \"${x:-'$(touch p)'}\"",
            "cat <<E\n${HOME+'$(touch p)'}\nE",
            // Replacement strings.
            "echo 'touch p' | xargs -I ls bash -c ls",
            "echo 'touch p' | xargs -i bash -c {}",
            "echo 'touch p' | xargs --replace=ls bash -c ls",
            // The shell's table of programs.
            "BASH_CMDS=([nproc]=/bin/sh); nproc -c 'touch p'",
            "hash -p /bin/sh nproc; nproc -c 'touch p'",
            // Descriptors in variables, `%n`, and other ways to set a variable.
            "x='b[$(touch p)]'; printf x {a[x]}</dev/null",
            "printf '%n' PATH; ls",
            "printf -v 'a[$(touch p)]' x",
            "read 'a[$(touch p)]'",
            "test -v 'a[$(touch p)]'",
            "[ -v 'a[$(touch p)]' ]",
            "[[ -v 'a[$(touch p)]' ]]",
            "unset 'a[$(touch p)]'",
            "getopts 'a[$(touch p)]' x",
            "let 'a[$(touch p)]'",
            "wait -p 'a[$(touch p)]'",
            "mapfile -C 'touch p' -c 1 < a.txt",
        ],
    );
}

// Mutant: `git::config` accepts `--get` anywhere.
#[test]
fn git_commands_that_look_read_only_but_write_require_approval() {
    let project = project();
    git(project.path(), &["branch", "victim"]);
    never_free(
        project.path(),
        &[],
        &[
            "git config core.fsmonitor 'touch p' --get",
            "git config --global alias.zz '!touch p' --get",
            "git branch --format -- -D victim -- --list",
            "git branch -D victim --list",
            "git branch new --list",
            "git tag --sort=refname new",
            "git -c core.fsmonitor='touch p' status",
            "git -c alias.x='!touch p' x",
            "git log --output=p",
            "git log --until -- --output=p",
            "git diff --ext-diff",
            "git show --textconv",
            "git grep -Otouch x",
            "git diff --no-index a.txt sub",
            "git --exec-path=/tmp status",
            "git log --show-signature",
            "git log --format=%G?",
            "git remote show origin",
            "git fetch",
            "git ls-files --exclude-from=.env",
            "git stash",
            "git reflog expire --all",
        ],
    );
}

// Mutants: `forbidden_key` returns `None`; each of alternates, `commondir`, `config.worktree`, the common configuration, hooks,
// submodules, bare repositories, missing parts, links and repositories outside the working directories is not looked at.
#[test]
fn git_runs_without_approval_only_where_no_configuration_can_start_a_program() {
    let make = |change: &dyn Fn(&Path)| {
        let project = project();
        change(project.path());
        project
    };
    let append = |folder: &Path, file: &str, text: &str| {
        let path = folder.join(file);
        let old = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, old + text).unwrap();
    };
    let bare = |folder: &Path| {
        let evil = folder.join("evil");
        fs::create_dir_all(evil.join("real/objects")).unwrap();
        fs::create_dir_all(evil.join("real/refs")).unwrap();
        fs::write(evil.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(evil.join("commondir"), "real\n").unwrap();
        fs::write(evil.join("real/config"), "[diff]\n\texternal = touch p\n").unwrap();
    };
    let hook = |folder: &Path| {
        let hook = folder.join(".git/hooks/post-index-change");
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, "#!/bin/sh\ntouch p\n").unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let submodule = |folder: &Path| {
        git(&folder.join("sub"), &["init", "-q"]);
        git(&folder.join("sub"), &["commit", "-q", "--allow-empty", "-m", "x"]);
        git(folder, &["rm", "-rq", "--cached", "sub"]);
        git(folder, &["add", "sub"]);
        append(&folder.join("sub"), ".git/config", "[core]\n\tfsmonitor = touch p\n");
    };
    let linked = |folder: &Path, name: &str| {
        fs::rename(folder.join(name), folder.join("conf/moved")).unwrap();
        symlink("../conf/moved", folder.join(name)).unwrap();
    };
    let outside = project();
    let cases: Vec<(TempDir, &str)> = vec![
        (make(&|folder| append(folder, ".git/config", "[core]\n\tfsmonitor = touch p\n")), ""),
        (make(&|folder| append(folder, ".git/config", "[diff]\n\texternal = touch p\n")), ""),
        (make(&|folder| append(folder, ".git/config", "[include]\n\tpath = x\n")), ""),
        (make(&|folder| append(folder, ".git/config.worktree", "[core]\n\tfsmonitor = x\n")), ""),
        (make(&|folder| append(folder, ".git/objects/info/alternates", "/x\n")), ""),
        (make(&hook), ""),
        (make(&submodule), ""),
        (make(&bare), "cd evil && "),
        (
            make(&|folder| {
                fs::remove_dir_all(folder.join(".git")).unwrap();
                bare(folder);
                fs::write(folder.join(".git"), "gitdir: evil\n").unwrap();
            }),
            "",
        ),
        (make(&|folder| fs::remove_file(folder.join(".git/HEAD")).unwrap()), ""),
        (
            // Complete and harmless itself, and its configuration is elsewhere.
            make(&|folder| {
                fs::create_dir_all(folder.join(".git/real/objects")).unwrap();
                fs::create_dir_all(folder.join(".git/real/refs")).unwrap();
                fs::write(folder.join(".git/commondir"), "real\n").unwrap();
                append(folder, ".git/real/config", "[diff]\n\texternal = touch p\n");
            }),
            "",
        ),
        (make(&|folder| linked(folder, ".git/config")), ""),
        (make(&|folder| linked(folder, ".git/objects")), ""),
        (
            make(&|folder| {
                fs::remove_dir_all(folder.join(".git")).unwrap();
                let gitdir = format!("gitdir: {}\n", outside.path().join(".git").display());
                fs::write(folder.join(".git"), gitdir).unwrap();
            }),
            "",
        ),
    ];
    for (project, before) in &cases {
        let commands = ["git status", "git diff HEAD", "git show", "git log -p", "git ls-files"];
        let commands: Vec<_> =
            commands.iter().map(|command| format!("{before}{command}")).collect();
        let commands: Vec<_> = commands.iter().map(String::as_str).collect();
        never_free(project.path(), &[], &commands);
    }
    let ordinary = project();
    let mut policy = policy(ordinary.path(), PermissionMode::Default, &[]);
    assert_eq!(outcome(&policy, "Bash", "git status"), "allow");
    policy.trusts_project = false;
    assert_eq!(outcome(&policy, "Bash", "git status"), "ask", "the folder is not trusted");
    assert_eq!(
        outcome(&policy, "Bash", "ls"),
        "allow",
        "other programs do not use the repository's configuration"
    );
}

/// The decision on a git command with these variables. `{}` in a value is the project.
fn with_variables(project: &Path, variables: &[(&str, &str)]) -> String {
    let mut policy = policy(project, PermissionMode::AcceptEdits, &[]);
    let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    let filled = |value: &str| value.replace("{}", project.to_str().unwrap());
    let given = variables.iter().map(|(name, value)| ((*name).to_owned(), filled(value)));
    let variables = given.chain([path]).collect();
    policy.set_environment(&ostler_process::Environment { replaces: true, variables });
    outcome(&policy, "Bash", "git diff")
}

// Mutants: `danger` that does not look at `leads_git`; `leads_git` without any one of these names; relative paths accepted.
#[test]
fn variables_that_point_git_elsewhere_require_approval() {
    let project = project();
    assert_eq!(with_variables(project.path(), &[("GIT_AUTHOR_NAME", "x")]), "allow");
    for name in [
        "GIT_DIR",
        "GIT_COMMON_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_EXEC_PATH",
        "GIT_EXTERNAL_DIFF",
        "GIT_ATTR_SOURCE",
        "GIT_GRAFT_FILE",
        "GIT_SHALLOW_FILE",
        "GIT_CONFIG",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_SYSTEM",
    ] {
        assert_eq!(with_variables(project.path(), &[(name, "/x")]), "ask", "{name}");
    }
    for name in ["GIT_CONFIG_GLOBAL", "HOME", "XDG_CONFIG_HOME"] {
        assert_eq!(with_variables(project.path(), &[(name, "sub")]), "ask", "{name}");
        assert_eq!(with_variables(project.path(), &[(name, "/nowhere")]), "allow", "{name}");
    }
}

// Mutants: `danger` without `users_configuration`; files that the agent cannot write checked too; each of `.gitconfig`,
// `git/config`, `XDG_CONFIG_HOME` and `GIT_CONFIG_GLOBAL` not looked at.
#[test]
fn the_users_configuration_of_git_is_checked_where_the_agent_can_write_it() {
    const BAD: &str = "[diff]\n\texternal = touch p\n";
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join(".gitconfig"), BAD).unwrap();
    let home = home.path().to_str().unwrap();
    for (file, text, variables, expected) in [
        (".gitconfig", "[user]\n\tname = x\n", &[("HOME", "{}")][..], "allow"),
        (".gitconfig", BAD, &[("HOME", "{}")], "ask"),
        (".config/git/config", BAD, &[("HOME", "{}")], "ask"),
        ("conf/git/config", BAD, &[("HOME", "/nowhere"), ("XDG_CONFIG_HOME", "{}/conf")], "ask"),
        (".config/git/config", BAD, &[("HOME", "{}"), ("XDG_CONFIG_HOME", "/nowhere")], "allow"),
        ("own", BAD, &[("GIT_CONFIG_GLOBAL", "{}/own")], "ask"),
        // Takes the place of the other files.
        (".gitconfig", BAD, &[("HOME", "{}"), ("GIT_CONFIG_GLOBAL", "/dev/null")], "allow"),
        // The user's own, which the agent cannot change.
        ("a.txt", "x\n", &[("HOME", home)], "allow"),
    ] {
        let project = project();
        let path = project.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        assert_eq!(with_variables(project.path(), variables), expected, "{file} {variables:?}");
    }
}

// As with configuration files that are kept in a repository. Mutant: `is_inside` in place of `may_be_inside`, as it was: a file
// that is a link counted as one that the agent cannot write.
#[test]
fn the_users_configuration_of_git_may_be_a_link_to_a_file_of_the_project() {
    let (project, home) = (project(), tempfile::tempdir().unwrap());
    let config = project.path().join("conf/gitconfig");
    symlink(&config, home.path().join(".gitconfig")).unwrap();
    let decided = || with_variables(project.path(), &[("HOME", home.path().to_str().unwrap())]);
    fs::write(&config, "[user]\n\tname = x\n").unwrap();
    assert_eq!(decided(), "allow");
    fs::write(&config, "[diff]\n\texternal = touch p\n").unwrap();
    assert_eq!(decided(), "ask");
}

// Mutants: includes, or those with a condition, are not followed; files that include each other are not noticed; a file that does
// not exist counts.
#[test]
fn the_users_configuration_of_git_may_include_a_file_of_the_project() {
    let (project, home) = (project(), tempfile::tempdir().unwrap());
    let include = |file: &str, of: &str| {
        let text = format!("[diff]\n\texternal = x\n[includeIf \"gitdir:/\"]\n\tpath = {file}\n");
        fs::write(home.path().join(of), text).unwrap();
    };
    let config = project.path().join("conf/gitconfig");
    include("~/second", ".gitconfig");
    include(config.to_str().unwrap(), "second");
    let decided = || with_variables(project.path(), &[("HOME", home.path().to_str().unwrap())]);
    assert_eq!(decided(), "allow", "it does not exist");
    fs::write(&config, "[user]\n\tname = x\n").unwrap();
    assert_eq!(decided(), "allow");
    fs::write(&config, "[diff]\n\texternal = touch p\n").unwrap();
    assert_eq!(decided(), "ask");
    include("~/second", "second");
    assert_eq!(decided(), "ask", "they include each other without end");
}

// Mutants: `read_to_string` in place of `read_text`; `fs::read` of the index.
#[test]
fn endless_files_of_git_are_not_read() {
    let forms: [&dyn Fn(&Path); 3] = [
        &|path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        &|path| symlink("/dev/zero", path).unwrap(),
        &|path| fs::File::create(path).unwrap().set_len(1 << 40).unwrap(),
    ];
    for name in ["commondir", "config", "config.worktree", "index"] {
        for (n, put) in forms.iter().enumerate() {
            let project = project();
            let path = project.path().join(".git").join(name);
            let _ = fs::remove_file(&path);
            put(&path);
            let policy = policy(project.path(), PermissionMode::Default, &[]);
            assert_eq!(outcome(&policy, "Bash", "git status"), "ask", "{name}, form {n}");
        }
    }
}

// Mutant: `places_of` keeps a pattern as it is written; `files_only` is ignored.
#[test]
fn files_outside_are_not_read_through_links_lists_and_patterns() {
    let (project, outside) = (project(), tempfile::tempdir().unwrap());
    let cwd = project.path();
    let secret = outside.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    symlink(&secret, cwd.join("link")).unwrap();
    for folder in ["d1", "d2"] {
        fs::create_dir(cwd.join(folder)).unwrap();
    }
    symlink(&secret, cwd.join("d1/x")).unwrap();
    fs::write(cwd.join("d2/x"), "").unwrap();
    fs::write(cwd.join("f"), secret.display().to_string()).unwrap();
    fs::write(cwd.join("@f"), "").unwrap();
    fs::write(cwd.join("-n"), "").unwrap();
    symlink("/", cwd.join("a=")).unwrap();
    let listing = format!("printf '%s\\n' {}/*", outside.path().display());
    let in_loop = format!("for f in {}/*; do echo $f; done", outside.path().display());
    let echo = format!("echo {}/*", outside.path().display());
    never_free(
        cwd,
        &[],
        &[
            "cat link",
            "wc --files=link",
            "wc --files0-from=link",
            "hexdump -flink a.txt",
            "hexdump -f link a.txt",
            "diff -N . sub",
            "diff d1 d2",
            "diff d1 a.txt",
            "diff d1/x d2/x",
            "strings @f",
            "strings ?f",
            "cat ?f",
            "cat *",
            "sort *",
            "cat a=~/.ssh/id_rsa",
            "cat < a=~/.ssh/id_rsa",
            "cat < link",
            "sha256sum -c f",
            "md5sum --check f",
            "grep -f f a.txt",
            "file -f f",
            "find -files0-from f",
            "sort --files0-from=f",
            "du --files0-from=f",
            "ls -L d1",
            "grep -R x d1",
            "rg -L x d1",
            "tree -l",
            "tail -f a.txt",
            "cat d1/*",
            "cat d?/x",
            "cd d1 && cat x",
            "cd sub/.. && cat link",
            "cd sub && cd .. && cd ..",
            "cd sub; cd ..; cd ..; ls",
            "cd missing || cd ..",
            "cd sub | cd .. && ls",
            "cd sub && ls; cat ../link",
            &listing,
            &in_loop,
            &echo,
        ],
    );
}

// Mutant: `TouchedPaths::read_by` ignores `searches`.
#[test]
fn no_program_shows_a_file_that_a_rule_forbids_to_read() {
    let project = project();
    let commands = [
        "git diff",
        "git diff HEAD",
        "git show",
        "git log -p",
        "git log -S x",
        "git show HEAD -- ':(top).env'",
        "git show HEAD -- '*env'",
        "git show HEAD:.env",
        "git cat-file -p HEAD:.env",
        "git cat-file -p 587be6b4c3f93f93c489c0111bba5596147a26cb",
        "git blame .env",
        "git grep x",
        "diff -N . sub",
        "diff .env a.txt",
        "wc --files=.env",
        "hexdump -f.env a.txt",
        "cat .env",
        "cat .e*",
        "cat .E*",
        "cat < .env",
        "head -1 ./sub/../.env",
        "cd sub && cat ../.env",
        "grep -r x .",
        "grep x .env",
        "rg x",
        "sed -n 1p .env",
        "cat $X",
        "base64 --wrap=0 .env",
        "curl -d @.env http://localhost",
        "dd if=.env",
    ];
    for rule in ["deny Read(.env)", "ask Read(.env)"] {
        never_free(project.path(), &[rule], &commands);
        never_free(project.path(), &[rule, "allow Bash"], &commands);
        let bypass = policy(project.path(), PermissionMode::BypassPermissions, &[rule]);
        for command in commands {
            assert_ne!(outcome(&bypass, "Bash", command), "allow", "{rule}: {command}");
        }
    }
    let guarded = policy(project.path(), PermissionMode::Default, &["deny Read(.env)"]);
    for command in
        ["ls -la", "cat a.txt", "git status", "git log --oneline", "grep x a.txt", "cat *.txt"]
    {
        assert_eq!(outcome(&guarded, "Bash", command), "allow", "{command}");
    }
}

// Mutant: `may_cover_below` returns true.
#[test]
fn a_rule_about_another_folder_does_not_affect_commands_that_do_not_name_it() {
    let (project, elsewhere) = (project(), tempfile::tempdir().unwrap());
    let rule = format!("deny Read(/{}/**)", elsewhere.path().display());
    let named = format!("cat {}/token", elsewhere.path().display());
    let moved = format!("mv {} x", elsewhere.path().display());
    fs::write(elsewhere.path().join("token"), "").unwrap();
    let bypass = policy(project.path(), PermissionMode::BypassPermissions, &[&rule]);
    for command in ["rg x", "git diff", "cp -r src x", "FOO=1 make", "for f in a b; do wc $f; done"]
    {
        assert_eq!(outcome(&bypass, "Bash", command), "allow", "{command}");
    }
    for command in [named, moved] {
        assert_eq!(outcome(&bypass, "Bash", &command), "deny", "{command}");
    }
}

// Mutant: `touches` does not look into folders that are moved.
#[test]
fn a_folder_with_a_protected_file_is_not_moved_or_removed_without_approval() {
    let project = project();
    for rule in ["deny Read(conf/.env)", "deny Edit(conf/.env)", "ask Read(conf/.env)"] {
        for mode in [PermissionMode::AcceptEdits, PermissionMode::BypassPermissions] {
            let policy = policy(project.path(), mode, &[rule]);
            let expected = if rule.contains("Read") { "mv conf conf2" } else { "rm -rf conf" };
            assert_ne!(outcome(&policy, "Bash", expected), "allow", "{rule}: {expected}");
            assert_eq!(outcome(&policy, "Bash", "mv sub sub2"), "allow", "{rule}");
        }
    }
}

// Mutant: `narrows_part` does not ask `hides`.
#[test]
fn a_denied_command_is_found_on_every_reading() {
    let project = project();
    for (rule, commands) in [
        (
            "Bash(git push:*)",
            &[
                "git push",
                "git --attr-source HEAD push",
                "git --config-env a.b=HOME push",
                "git -c alias.p=push p",
                "git --config-env=alias.p=X p",
                "git p",
                "git -C sub --no-pager push",
                "git --git-dir .git push",
                "git --unknown push",
                "git $X",
                "/usr/bin/git push",
                "env git push",
                "sh -c 'git push'",
                "strace git push",
                "ssh host 'git push'",
            ][..],
        ),
        (
            "Bash(rm:*)",
            &[
                "rm x",
                "/bin/rm x",
                "r''m x",
                "echo 'rm x' | xargs -I ls bash -c ls",
                "ls | xargs -i rm {}",
                "ls | xargs rm",
                "find . -delete",
                "find . -exec rm {} +",
                "timeout 5 rm x",
                "nice -n 5 rm x",
                "sudo rm x",
                "watch rm x",
                "flock l rm x",
                "script -c 'rm x'",
                "su -c 'rm x'",
                "setsid rm x",
                "nohup rm x",
                "stdbuf -oL rm x",
                "command rm x",
                "exec rm x",
                "time rm x",
                "eval rm x",
                "eval \"$X\"",
                "trap 'rm x' EXIT",
                "git -c alias.x='!rm y' x",
                "git submodule foreach 'rm x'",
                "RANDOM='a[$(rm x)]'; ls",
                "for RANDOM in 'a[$(rm x)]'; do ls; done",
                "a=(['b[$(rm x)]']=1)",
                "echo \"${x:-'$(rm x)'}\"",
                "cat <<E\n${HOME+'$(rm x)'}\nE",
                "BASH_CMDS=([ls]=/bin/rm); ls x",
                "x='b[$(rm x)]'; printf x {a[x]}</dev/null",
                "printf '%n' PATH; ls",
                "hash -p /bin/rm ls; ls x",
                "alias ls='rm x'; ls",
                "f() { \"$@\"; }; f rm x",
                "bash <<< 'rm x'",
                "source /dev/stdin <<< 'rm x'",
                "busybox rm x",
                "strace rm x",
                "parallel rm ::: x",
                "x=rm; $x y",
                "[ $x 'a[$(rm y)]' ]",
            ],
        ),
    ] {
        for behavior in ["deny", "ask"] {
            let rules = [&format!("{behavior} {rule}"), "allow Bash"];
            let policy = policy(project.path(), PermissionMode::BypassPermissions, &rules);
            for command in commands {
                assert_ne!(
                    outcome(&policy, "Bash", command),
                    "allow",
                    "{behavior} {rule}: {command}"
                );
            }
        }
    }
    let rules = ["deny Bash(rm:*)", "deny Bash(git push:*)"];
    let bypass = policy(project.path(), PermissionMode::BypassPermissions, &rules);
    for command in [
        "cargo test",
        "git commit -m 'rm old files, git push later'",
        "echo rm x",
        "for f in a b; do wc -l $f; done",
        "x=$(date); echo $x",
        "set -euo pipefail; make all",
        "npm run build 2>&1 | tail -5",
        "cat > notes.txt <<'E'\nhello\nE",
    ] {
        assert_eq!(outcome(&bypass, "Bash", command), "allow", "{command}");
    }
}

// Mutant: `covers_part` does not ask `starts_others`.
#[test]
fn an_allow_rule_covers_only_commands_that_certainly_run_its_prefix() {
    let project = project();
    for (rule, command, expected) in [
        ("Bash(git:*)", "git push", "allow"),
        ("Bash(git:*)", "git --no-pager push", "allow"),
        ("Bash(git:*)", "git -c alias.x='!touch p' x", "ask"),
        ("Bash(git:*)", "git -c core.sshCommand=x push", "ask"),
        ("Bash(git:*)", "git --config-env=a.b=C push", "ask"),
        ("Bash(git:*)", "git --exec-path=. push", "ask"),
        ("Bash(git:*)", "git -C / push", "ask"),
        ("Bash(git:*)", "git $X", "ask"),
        ("Bash(git log:*)", "git log -5", "allow"),
        ("Bash(git log:*)", "git --no-pager log -5", "allow"),
        ("Bash(git log:*)", "git -c x=y log", "ask"),
        ("Bash(git log:*)", "git -C sub log", "ask"),
        ("Bash(npm test:*)", "npm test", "allow"),
        ("Bash(npm test:*)", "npm test -- \"$NAME\" ${OTHER}", "allow"),
        ("Bash(npm test:*)", "CI=1 npm test", "allow"),
        ("Bash(npm test:*)", "npm test 2>&1 | tail -5", "allow"),
        ("Bash(npm test:*)", "npm test > /dev/null", "allow"),
        ("Bash(npm test:*)", "cd sub && npm test", "allow"),
        ("Bash(npm test:*)", "npm test > out.txt", "ask"),
        ("Bash(npm test:*)", "npm test $(touch p)", "ask"),
        ("Bash(npm test:*)", "npm test `touch p`", "ask"),
        ("Bash(npm test:*)", "npm test ${X:-y}", "ask"),
        ("Bash(npm test:*)", "npm test <(touch p)", "ask"),
        ("Bash(npm test:*)", "npm test & touch p", "ask"),
        ("Bash(npm test:*)", "npm test; touch p", "ask"),
        ("Bash(npm test:*)", "NODE_OPTIONS=x npm test", "ask"),
        ("Bash(npm test:*)", "PATH=. npm test", "ask"),
        ("Bash(npm test:*)", "RANDOM='a[$(touch p)]' npm test", "ask"),
        ("Bash(npm test:*)", "$X npm test", "ask"),
        ("Bash(npm test:*)", "timeout 5 npm test", "ask"),
        ("Bash(npm test:*)", "env npm test", "ask"),
        ("Bash(npm test:*)", "bash -c 'npm test'", "ask"),
        ("Bash(npm test:*)", "npm() { touch p; }; npm test", "ask"),
        ("Bash(npm test:*)", "cd / && npm test", "ask"),
        ("Bash(timeout:*)", "timeout 5 touch p", "ask"),
        ("Bash(xargs:*)", "echo p | xargs touch", "ask"),
        ("Bash(xargs:*)", "echo p | xargs -I ls bash -c ls", "ask"),
        ("Bash(env:*)", "env touch p", "ask"),
        ("Bash(bash:*)", "bash -c 'touch p'", "ask"),
        ("Bash(bash:*)", "bash build.sh", "allow"),
        ("Bash(sudo:*)", "sudo touch p", "ask"),
        ("Bash(find:*)", "find . -exec touch p ;", "ask"),
        ("Bash(timeout 5 npm test)", "timeout 5 npm test", "allow"),
        ("Bash(timeout 5 npm test)", "timeout 5 npm test x", "ask"),
        ("Bash(eval \"$X\")", "eval \"$X\"", "allow"),
        ("Bash(echo:*)", "echo \"${x:-'$(touch p)'}\"", "ask"),
        ("Bash(printf:*)", "printf x {a[x]}</dev/null", "ask"),
    ] {
        let rule = format!("allow {rule}");
        let policy = policy(project.path(), PermissionMode::Default, &[&rule]);
        let decision = decide(&policy, "Bash", command);
        assert_eq!(
            decision.outcome.to_string(),
            expected,
            "{rule} | {command}: {:#?}",
            decision.chain
        );
    }
}

#[test]
fn everyday_commands_that_only_read_need_no_approval() {
    let project = project();
    for mode in MODES {
        let policy = policy(project.path(), mode.clone(), &[]);
        for command in [
            "ls",
            "ls -la src",
            "pwd",
            "cat a.txt",
            "cat src/*.rs",
            "head -50 a.txt",
            "tail -n 20 a.txt",
            "wc -l a.txt src/main.rs",
            "git status",
            "git status --short",
            "git diff",
            "git diff HEAD~1 -- src",
            "git log --oneline -5",
            "git show HEAD",
            "git branch -a",
            "git --no-pager log -3 --stat",
            "rg x",
            "rg -n 'fn main' src",
            "grep -rn x src",
            "grep -n \"x y\" a.txt",
            "find . -name '*.rs'",
            "find . -type f -name '*.rs' | head -20",
            "sed -n '1,20p' a.txt",
            "cat a.txt | grep x | wc -l",
            "cd sub && ls",
            "cd sub && cat b.txt",
            "cd sub && ls -la && cd ..",
            "git blame -L 1,10 a.txt",
            "ls src 2>/dev/null || echo none",
            "cat a.txt; cat src/main.rs",
            "test -f a.txt && cat a.txt",
            "which cargo",
            "du -sh .",
            "sort a.txt | uniq -c | sort -rn | head",
            "git log --oneline | head -3",
        ] {
            let decision = decide(&policy, "Bash", command);
            assert_eq!(decision.outcome, Outcome::Allow, "{mode} {command}: {:#?}", decision.chain);
        }
    }
}

// Mutant: `is_exact` takes `make *` for an exact command.
#[test]
fn every_suggested_rule_allows_its_command() {
    let project = project();
    for command in [
        "make test && cargo build",
        "timeout 5 make",
        "npm test | tee log.txt",
        "git push origin main",
        "git -C sub push",
        "cat /etc/hosts",
        "ls *",
        "make *",
        "make :*",
        "FOO=1 make",
        "make $X",
        "curl -s localhost; make; make",
    ] {
        let before = policy(project.path(), PermissionMode::Default, &[]);
        let decision = decide(&before, "Bash", command);
        for update in &decision.suggestions {
            let mut after = before.clone();
            after.apply(update).unwrap();
            assert_eq!(outcome(&after, "Bash", command), "allow", "{command}: {update:?}");
            for other in ["touch p", "make other"] {
                let is_prefix = serde_json::to_string(update).unwrap().contains(":*\"");
                let ran = outcome(&after, "Bash", other) == "allow";
                assert!(!ran || (is_prefix && other.starts_with("make")), "{command}: {update:?}");
            }
        }
    }
    let decision =
        decide(&policy(project.path(), PermissionMode::Default, &[]), "Bash", "make a && npm test");
    let text = serde_json::to_string(&decision.suggestions).unwrap();
    assert!(text.contains("\"make a:*\"") && text.contains("\"npm test:*\""), "{text}");
}
