//! Tables: variables and words with a meaning of their own.

/// Variables that programs may see without doing anything else because of them.
const SAFE_VARIABLES: &[&str] = &[
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

/// Words of the shell's grammar. They are not the name of a program.
pub(crate) const RESERVED: &[&str] = &[
    "!", "[[", "]]", "]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "until", "while", "{", "}", "((", "))", "[",
];

/// Whether programs may see this variable without doing anything else because of it.
pub(crate) fn is_safe_variable(name: &str) -> bool {
    SAFE_VARIABLES.contains(&name) || name.starts_with("LC_")
}

/// Whether setting this variable changes neither what the shell runs nor what programs run that inherit it.
///
/// Names in lower case are the user's own, but for those that bash and some programs took. All others may mean
/// something (`PATH`, `RANDOM`, `BASH_CMDS`, `GIT_DIR`), and lists of those are never complete.
pub(crate) fn is_plain_variable(name: &str) -> bool {
    const TAKEN: &[&str] = &["auto_resume", "histchars", "path", "fpath", "cdpath", "prompt"];
    let is_lower = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let is_own = is_lower && !TAKEN.contains(&name) && !name.contains("_config");
    is_own || is_safe_variable(name)
}
