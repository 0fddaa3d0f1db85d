//! Tables of variables and reserved words.

/// Variables that programs may inherit without changing their behaviour.
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

/// Reserved words of the shell, which are not names of programs.
pub(crate) const RESERVED: &[&str] = &[
    "!", "[[", "]]", "]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "until", "while", "{", "}", "((", "))", "[",
];

/// Whether programs may inherit this variable without changing their behaviour.
pub(crate) fn is_safe_variable(name: &str) -> bool {
    SAFE_VARIABLES.contains(&name) || name.starts_with("LC_")
}

/// Whether setting this variable changes neither what the shell runs nor what programs that inherit it run.
///
/// Lower-case names belong to the user, except for those that bash and some programs use. All other names may have a
/// meaning (`PATH`, `RANDOM`, `BASH_CMDS`, `GIT_DIR`), and a list of them would never be complete.
pub(crate) fn is_plain_variable(name: &str) -> bool {
    const TAKEN: &[&str] = &["auto_resume", "histchars", "path", "fpath", "cdpath", "prompt"];
    let is_lower = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let is_own = is_lower && !TAKEN.contains(&name) && !name.contains("_config");
    is_own || is_safe_variable(name)
}
