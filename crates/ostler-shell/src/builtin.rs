//! Shell builtins that can change the meaning of later words, or that evaluate arithmetic, which can run commands.

use crate::Part;
use crate::table::is_plain_variable;
use crate::word::Word;

/// Why the effect of a builtin is unclear. `None` for programs, and for known uses of builtins.
pub(crate) fn doubt(part: &Part) -> Option<String> {
    let words = part.argv.get(1..).unwrap_or_default();
    let is_understood = match part.name() {
        "printf" => crate::special::printf(words).is_ok() || has_plain_format(words),
        "read" => words.iter().all(is_plain_name),
        "test" => crate::special::test(words).is_ok() || is_comparison(words),
        "export" | "readonly" | "local" => words.iter().all(is_plain_setting),
        "set" => words.iter().all(is_plain_switch),
        "unset" => words.iter().all(|word| word.as_literal().is_some_and(is_plain_variable)),
        "trap" => words.is_empty(),
        "alias" | "bind" | "caller" | "compgen" | "complete" | "compopt" | "declare" | "dirs"
        | "enable" | "fc" | "getopts" | "hash" | "history" | "let" | "mapfile" | "readarray"
        | "shopt" | "typeset" | "unalias" | "[" => false,
        _ => true,
    };
    (!is_understood).then(|| format!("the effect of {} here is unclear", part.name()))
}

/// `read -r name`. Other names have a special meaning, and an array index would be evaluated.
fn is_plain_name(word: &Word) -> bool {
    word.as_literal().is_some_and(|text| text == "-r" || is_plain_variable(text))
}

/// Non-literal arguments are harmless if the format is literal.
fn has_plain_format(words: &[Word]) -> bool {
    words.first().is_some_and(|format| crate::special::printf(std::slice::from_ref(format)).is_ok())
}

/// `test a = b` with an operator that does not evaluate arithmetic.
fn is_comparison(words: &[Word]) -> bool {
    let operators =
        ["=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];
    match words {
        [left, operator, right] => {
            left.as_literal().is_some()
                && right.as_literal().is_some()
                && operator.as_literal().is_some_and(|operator| operators.contains(&operator))
        }
        _ => false,
    }
}

fn is_plain_setting(word: &Word) -> bool {
    let name = word.as_literal().map(|text| text.split('=').next().unwrap_or_default());
    name.is_some_and(is_plain_variable)
}

/// `set -euo pipefail`.
fn is_plain_switch(word: &Word) -> bool {
    word.as_literal().is_some_and(|text| {
        let flags = text.strip_prefix(['-', '+']);
        text == "pipefail" || flags.is_some_and(|flags| flags.chars().all(|c| "euxo".contains(c)))
    })
}
