//! Where backends differ, and why that is right, or at least known.

use super::stage::Backend;

/// A backend that tells a story of its own.
pub(super) struct Difference {
    pub(super) scenario: &'static str,
    backends: &'static [Backend],
    pub(super) reason: &'static str,
    story: &'static str,
}

pub(super) const DIFFERENCES: &[Difference] = &[];

/// The story a backend tells in place of the common one.
pub(super) fn of(scenario: &str, backend: Backend) -> Option<&'static str> {
    let fits =
        |entry: &&Difference| entry.scenario == scenario && entry.backends.contains(&backend);
    DIFFERENCES.iter().find(fits).map(|entry| entry.story)
}
