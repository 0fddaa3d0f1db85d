//! Whether commands take up too much of the disk.

use std::path::PathBuf;

use super::disk::{Amount, DiskBefore};
use crate::reached::Resource;

/// What more than this counts as written, once the limit was reached: deleting files also writes a little.
const STEP: Amount = Amount { bytes: 1 << 20, files: 100 };
/// How much more of a limit there must be on disk before the folders are read again, if other programs wrote it.
const PART: u64 = 8;

/// Watches the growth of some folders.
#[derive(Debug, Default)]
pub(super) struct DiskWatch {
    before: Option<DiskBefore>,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// There is not too much.
    #[default]
    Below,
    /// File systems have grown by this much, and it was not the commands.
    NotOurs(Amount),
    /// A command was ended when file systems had grown by this much. What is left of it still counts.
    Over(Amount),
}

impl DiskWatch {
    /// Adds folders.
    pub(super) fn add(&mut self, roots: &[PathBuf]) {
        match &mut self.before {
            Some(before) => before.add(roots),
            None => self.before = Some(DiskBefore::now(roots)),
        }
    }

    /// The limit that was reached since the last look. `written` are the bytes that the commands have written, also in files
    /// that have no name any more.
    pub(super) fn look(
        &mut self,
        most_bytes: Option<u64>,
        most_files: Option<u64>,
        written: impl FnOnce() -> u64,
    ) -> Option<(Resource, u64)> {
        let before = self.before.as_ref()?;
        let unlimited = u64::MAX;
        let most = Amount {
            bytes: most_bytes.unwrap_or(unlimited),
            files: most_files.unwrap_or(unlimited),
        };
        if most.bytes == unlimited && most.files == unlimited {
            return None;
        }
        let growth = before.growth();
        let (state, reached) = self.state.next(growth, most, || {
            let changed = before.changed(most);
            Amount { bytes: changed.bytes.max(written()), files: changed.files }
        });
        self.state = state;
        reached.map(|resource| match resource {
            Resource::Files => (Resource::Files, most.files),
            _ => (Resource::Disk, most.bytes),
        })
    }
}

impl State {
    /// What follows, and what was reached. `own` is what the commands themselves have added.
    fn next(
        self,
        growth: Amount,
        most: Amount,
        own: impl FnOnce() -> Amount,
    ) -> (Self, Option<Resource>) {
        let exceeds = |amount: Amount, most: Amount| {
            let files = (amount.files > most.files).then_some(Resource::Files);
            (amount.bytes > most.bytes).then_some(Resource::Disk).or(files)
        };
        let Some(_) = exceeds(growth, most) else { return (Self::Below, None) };
        let plus = |amount: Amount, step: Amount| Amount {
            bytes: amount.bytes.saturating_add(step.bytes),
            files: amount.files.saturating_add(step.files),
        };
        let part = Amount { bytes: most.bytes / PART, files: most.files / PART };
        match self {
            Self::Over(at) => match exceeds(growth, plus(at, STEP)) {
                Some(resource) => (Self::Over(growth), Some(resource)),
                None => (self, None),
            },
            Self::NotOurs(at) if exceeds(growth, plus(at, part)).is_none() => (self, None),
            Self::Below | Self::NotOurs(_) => match exceeds(own(), most) {
                Some(resource) => (Self::Over(growth), Some(resource)),
                None => (Self::NotOurs(growth), None),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn amount(mib: u64) -> Amount {
        Amount { bytes: mib * MIB, files: 0 }
    }

    // Mutants: growth by other programs counts; the folders are read at every look; after the first end everything is allowed.
    #[test]
    fn only_what_the_commands_wrote_ends_them() {
        let most = Amount { bytes: 80 * MIB, files: 1000 };
        let never = || -> Amount { panic!("the folders need not be read") };
        assert_eq!(State::Below.next(amount(80), most, never), (State::Below, None));
        let (state, reached) = State::Below.next(amount(81), most, || amount(5));
        assert_eq!((state, reached), (State::NotOurs(amount(81)), None));
        assert_eq!(state.next(amount(91), most, never), (state, None));
        let (state, reached) = state.next(amount(92), most, || amount(81));
        assert_eq!((state, reached), (State::Over(amount(92)), Some(Resource::Disk)));
        assert_eq!(
            state.next(amount(93), most, never),
            (state, None),
            "a command may delete files"
        );
        let again = state.next(amount(94), most, never);
        assert_eq!(again, (State::Over(amount(94)), Some(Resource::Disk)));
        assert_eq!(state.next(amount(70), most, never), (State::Below, None));
        let files = Amount { bytes: 0, files: 1001 };
        let (state, reached) = State::Below.next(files, most, || files);
        assert_eq!((state, reached), (State::Over(files), Some(Resource::Files)));
    }
}
