//! Tables: variables and words with a meaning of their own.

/// Variables that programs may see without doing anything else because of them.
pub(crate) const SAFE_VARIABLES: &[&str] = &[
    "CI",
    "CLICOLOR",
    "COLORTERM",
    "COLUMNS",
    "DEBUG",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LINES",
    "LOGLEVEL",
    "LOG_LEVEL",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TERM",
    "TZ",
];

/// Words of the shell's grammar. As the name of a command they mean that the grammar read something else than the shell.
pub(crate) const RESERVED: &[&str] = &[
    "!", "[[", "]]", "]", "case", "do", "done", "elif", "else", "esac", "fi", "for", "function",
    "if", "in", "select", "then", "until", "while", "{", "}", "((", "))", "[",
];

/// Whether setting this variable changes what the shell runs, or what programs that inherit it run.
pub(crate) fn is_risky(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "BASHOPTS",
        "BASH_ENV",
        "BROWSER",
        "CC",
        "CDPATH",
        "CXX",
        "EDITOR",
        "ENV",
        "EXECIGNORE",
        "FCEDIT",
        "FPATH",
        "GLOBIGNORE",
        "HOME",
        "IFS",
        "JAVA_TOOL_OPTIONS",
        "LESSOPEN",
        "LESSCLOSE",
        "LESS",
        "MANPAGER",
        "PAGER",
        "PATH",
        "PROMPT_COMMAND",
        "PS0",
        "PS1",
        "PS2",
        "PS4",
        "PWD",
        "OLDPWD",
        "RIPGREP_CONFIG_PATH",
        "SHELL",
        "SHELLOPTS",
        "SSH_ASKPASS",
        "SUDO_ASKPASS",
        "TMPDIR",
        "VISUAL",
        "_JAVA_OPTIONS",
    ];
    const BEGINNINGS: &[&str] = &[
        "BASH_FUNC_",
        "CARGO",
        "DYLD_",
        "GIT_",
        "GREP_",
        "LD_",
        "NODE_",
        "NPM_",
        "PERL",
        "PYTHON",
        "RUBY",
        "RUST",
        "TAR_",
        "XDG_",
        "npm_",
    ];
    NAMES.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}
