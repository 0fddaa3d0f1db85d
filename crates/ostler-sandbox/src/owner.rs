//! Names of things that outlive a process, with the process that they belong to in it.

use std::fs;

/// How they begin.
pub(crate) const PREFIX: &str = "ostler-";

/// How the names of this process begin: no other process has the same number and start.
pub(crate) fn prefix() -> Option<String> {
    let number = std::process::id();
    Some(format!("{PREFIX}{number}-{}-", started(number)?))
}

/// Whether a name belongs to a process that is gone.
pub(crate) fn is_gone(name: &str) -> bool {
    owner(name).is_some_and(|(number, start)| started(number) != Some(start))
}

/// Whether a text is the beginning of all names of one process.
pub(crate) fn is_prefix(text: &str) -> bool {
    text.ends_with('-') && owner(text).is_some()
}

/// The process in a name, and when it was started.
fn owner(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// When a process was started, in the kernel's unit; `None` if there is none.
fn started(number: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name in parentheses may contain anything.
    let fields = stat.rsplit_once(')')?.1;
    fields.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutant: the start does not matter.
    #[test]
    fn a_name_belongs_to_one_process_also_if_its_number_is_used_again() {
        let own = prefix().unwrap();
        assert!(is_prefix(&own) && !is_gone(&format!("{own}7")));
        assert!(is_gone(&format!("{PREFIX}{}-1-0", std::process::id())));
        assert!(is_gone("ostler-4194305-77-3"));
        for other in ["", "ostler-", "ostler-main", "user.slice", "ostler-1-2"] {
            assert!(!is_prefix(other), "{other}");
        }
        assert!(!is_gone("ostler-main") && !is_gone("user.slice"));
    }
}
