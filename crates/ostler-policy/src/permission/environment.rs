//! The environment of commands: the variables that decisions depend on, and the reduced environment of a command that
//! runs because it is known to be harmless.
//!
//! Variables start programs: `BASH_ENV`, exported functions, `LD_PRELOAD`, `GIT_EXTERNAL_DIFF`, `RIPGREP_CONFIG_PATH`.
//! No list of them is complete, so a harmless command gets the few variables that it needs, and nothing else.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ostler_process::Environment;

/// The parts of a command's environment that decisions depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandEnvironment {
    /// The search path for programs; `None` where it is not set.
    path: Option<String>,
    /// Whether `cd` also searches other folders.
    pub(crate) has_cdpath: bool,
    /// A variable that points git to another repository or configuration.
    pub(crate) leads_git: Option<String>,
    /// A variable that can change what a program of the system does.
    pub(crate) changes_programs: Option<String>,
    /// The user's configuration files of git.
    git_files: Vec<PathBuf>,
    home: Option<PathBuf>,
}

impl CommandEnvironment {
    pub(crate) fn of(environment: &Environment) -> Self {
        let all = environment.all();
        let first = |is_meant: fn(&str, &str) -> bool| {
            all.iter().find(|(name, value)| is_meant(name, value)).map(|(name, _)| name.clone())
        };
        let folder =
            |name: &str| all.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = folder("HOME");
        let config = folder("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
        let usual =
            [home.as_ref().map(|it| it.join(".gitconfig")), config.map(|it| it.join("git/config"))];
        let git_files = match folder("GIT_CONFIG_GLOBAL") {
            Some(file) => vec![file],
            None => usual.into_iter().flatten().collect(),
        };
        Self {
            path: all.get("PATH").cloned(),
            has_cdpath: all.get("CDPATH").is_some_and(|value| !value.is_empty()),
            leads_git: first(leads_git),
            changes_programs: first(|name, value| {
                changes_programs(name) || leads_git(name, value) || !is_plain_value(name, value)
            }),
            git_files,
            home,
        }
    }

    /// The search path. Without one, shells use their own list, which can begin or end with the current folder.
    pub(crate) fn search_path(&self) -> &OsStr {
        OsStr::new(self.path.as_deref().unwrap_or_default())
    }

    /// The places of the user's configuration files of git.
    pub(crate) fn git_files(&self) -> impl Iterator<Item = &Path> {
        self.git_files.iter().map(PathBuf::as_path)
    }

    /// The home directory.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }
}

/// The variables of a harmless command, in addition to `LC_*`.
const NEEDED: &[&str] = &[
    "CLICOLOR",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "HOME",
    "LANG",
    "LINES",
    "LOGNAME",
    "LS_COLORS",
    "NO_COLOR",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CONFIG_HOME",
];

/// Whether a variable points git to another repository, other programs or another configuration.
fn leads_git(name: &str, value: &str) -> bool {
    match name {
        "GIT_DIR"
        | "GIT_COMMON_DIR"
        | "GIT_WORK_TREE"
        | "GIT_INDEX_FILE"
        | "GIT_OBJECT_DIRECTORY"
        | "GIT_ALTERNATE_OBJECT_DIRECTORIES"
        | "GIT_NAMESPACE"
        | "GIT_EXEC_PATH"
        | "GIT_EXTERNAL_DIFF"
        | "GIT_ATTR_SOURCE"
        | "GIT_GRAFT_FILE"
        | "GIT_SHALLOW_FILE"
        | "GIT_CONFIG"
        | "GIT_CONFIG_COUNT"
        | "GIT_CONFIG_PARAMETERS"
        | "GIT_CONFIG_SYSTEM" => true,
        // The place of the user's configuration. A relative path would depend on the folder in which git starts.
        "GIT_CONFIG_GLOBAL" | "HOME" | "XDG_CONFIG_HOME" => {
            !value.is_empty() && !value.starts_with('/')
        }
        _ => false,
    }
}

/// Whether a variable is known to change what read-only programs do. For commands that get the whole environment
/// because a rule allows one of their parts; the shell itself, and with it `LD_LIBRARY_PATH`, is then as the user has
/// it.
fn changes_programs(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "BASHOPTS",
        "BASH_ENV",
        "DYLD_INSERT_LIBRARIES",
        "ENV",
        "GCONV_PATH",
        "GREP_OPTIONS",
        "LD_AUDIT",
        "LD_PRELOAD",
        "LOCPATH",
        "MAGIC",
        "NLSPATH",
        "POSIXLY_CORRECT",
        "PS4",
        "RIPGREP_CONFIG_PATH",
        "SHELLOPTS",
        "TEXTDOMAINDIR",
        "TZDIR",
    ];
    const BEGINNINGS: &[&str] = &["BASH_FUNC_", "GIT_TRACE"];
    NAMES.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Whether the value of a language or time zone is not a path to a file.
fn is_plain_value(name: &str, value: &str) -> bool {
    if name != "TZ" && name != "LANG" && name != "LANGUAGE" && !name.starts_with("LC_") {
        return true;
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.@-+:,/<>".contains(c);
    value.chars().all(is_plain) && !value.starts_with([':', '/']) && !value.contains("..")
}

/// Configuration that keeps git from starting programs, also if a configuration file changes between decision and run.
/// Variables cannot set `diff.external`, `diff.<name>.command`, `textconv` and filters of attributes.
const GIT: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.sshCommand", "false"),
    ("core.askPass", "false"),
    ("credential.helper", ""),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("log.showSignature", "false"),
    ("protocol.allow", "never"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
];

/// The environment of a command that runs because it is known to be harmless.
pub fn reduced(environment: &Environment) -> Environment {
    let is_needed = |name: &str, value: &str| {
        (NEEDED.contains(&name) || name.starts_with("LC_"))
            && is_plain_value(name, value)
            && !leads_git(name, value)
    };
    let all = environment.all().into_iter();
    let mut variables: BTreeMap<_, _> =
        all.filter(|(name, value)| is_needed(name, value)).collect();
    let mut set = |name: String, value: &str| variables.insert(name, value.to_owned());
    for (name, value) in [
        ("GIT_PAGER", "cat"),
        ("PAGER", "cat"),
        ("GIT_ASKPASS", "false"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
    ] {
        set(name.to_owned(), value);
    }
    for (at, (key, value)) in GIT.iter().enumerate() {
        set(format!("GIT_CONFIG_KEY_{at}"), key);
        set(format!("GIT_CONFIG_VALUE_{at}"), value);
    }
    set("GIT_CONFIG_COUNT".to_owned(), &GIT.len().to_string());
    Environment { replaces: true, variables }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(variables: &[(&str, &str)]) -> Environment {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Environment { replaces: true, variables: variables.iter().map(pair).collect() }
    }

    // Seen to fail when `is_needed` is true for every name.
    #[test]
    fn a_harmless_command_gets_only_the_variables_that_it_needs() {
        let environment = only(&[
            ("PATH", "/usr/bin"),
            ("HOME", "/h"),
            ("LC_ALL", "C.UTF-8"),
            ("TZ", "Europe/Berlin"),
            ("LC_TIME", "../x"),
            ("TOKEN", "x"),
            ("BASH_ENV", "x"),
            ("BASH_FUNC_ls%%", "() { x; }"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_GLOBAL", "x"),
        ]);
        let reduced = reduced(&environment);
        assert!(reduced.replaces);
        let kept = |name: &str| reduced.get(name);
        assert_eq!(kept("PATH").as_deref(), Some("/usr/bin"));
        assert_eq!(kept("LC_ALL").as_deref(), Some("C.UTF-8"));
        assert_eq!(kept("TZ").as_deref(), Some("Europe/Berlin"));
        assert_eq!(kept("GIT_CONFIG_COUNT"), Some(GIT.len().to_string()));
        for name in ["LC_TIME", "TOKEN", "BASH_ENV", "BASH_FUNC_ls%%", "GIT_CONFIG_GLOBAL"] {
            assert_eq!(kept(name), None, "{name}");
        }
    }

    #[test]
    fn variables_that_affect_decisions_are_read() {
        let of = |name: &str, value: &str| CommandEnvironment::of(&only(&[(name, value)]));
        for name in ["BASH_ENV", "LD_PRELOAD", "BASH_FUNC_ls%%", "RIPGREP_CONFIG_PATH"] {
            assert_eq!(of(name, "x").changes_programs.as_deref(), Some(name));
        }
        assert_eq!(of("TZ", "/etc/passwd").changes_programs.as_deref(), Some("TZ"));
        assert_eq!(of("TZ", "Europe/Berlin").changes_programs, None);
        assert_eq!(of("GIT_DIR", "x").leads_git.as_deref(), Some("GIT_DIR"));
        assert_eq!(of("GIT_CONFIG_GLOBAL", "/dev/null").leads_git, None);
        assert_eq!(of("HOME", "fake").leads_git.as_deref(), Some("HOME"));
        assert_eq!(of("GIT_AUTHOR_NAME", "x").leads_git, None);
        assert!(of("CDPATH", "/").has_cdpath);
        assert!(!of("CDPATH", "").has_cdpath);
        assert_eq!(of("X", "x").search_path(), "", "an empty path is the current folder");
    }
}
