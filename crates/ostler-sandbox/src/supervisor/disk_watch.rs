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
    /// The commands have added too much, and one of them was ended. What is left of it still counts.
    Over {
        /// How much file systems had grown at the last look at the folders.
        growth: Amount,
        /// What of it was in the folders.
        in_folders: Amount,
    },
}

/// What the commands have added.
#[derive(Clone, Copy, Debug, Default)]
struct OwnAmount {
    in_folders: Amount,
    /// The bytes that the running ones have written, also in files that have no name any more.
    written: u64,
}

impl DiskWatch {
    /// Adds folders.
    pub(super) fn add(&mut self, roots: &[PathBuf]) {
        match &mut self.before {
            Some(before) => before.add(roots),
            None => self.before = Some(DiskBefore::now(roots)),
        }
    }

    /// A command is about to start: what was added before is not its own.
    pub(super) fn starting(&mut self, roots: &[PathBuf]) {
        self.add(roots);
        if let (State::Over { .. }, Some(before)) = (self.state, &self.before) {
            self.state = State::Over { growth: before.growth(), in_folders: before.changed() };
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
        let own = || OwnAmount { in_folders: before.changed(), written: written() };
        let (state, reached) = self.state.next(growth, most, own);
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
        own: impl FnOnce() -> OwnAmount,
    ) -> (Self, Option<Resource>) {
        if growth.exceeds(most).is_none() {
            return (Self::Below, None);
        }
        match self {
            Self::Over { growth: at, in_folders: before } => {
                if growth.exceeds(at.plus(STEP)).is_none() {
                    return (self, None);
                }
                let OwnAmount { in_folders, written } = own();
                // Other programs write too: only what is in the folders, or was written by the commands, is theirs.
                let is_theirs = written > STEP.bytes && written >= growth.bytes - at.bytes;
                let without_name = is_theirs.then_some(Resource::Disk);
                let reached = in_folders.exceeds(before.plus(STEP)).or(without_name);
                (Self::Over { growth, in_folders }, reached)
            }
            Self::NotOurs(at) if growth.exceeds(at.plus(most.part())).is_none() => (self, None),
            Self::Below | Self::NotOurs(_) => {
                let OwnAmount { in_folders, written } = own();
                let all = Amount { bytes: in_folders.bytes.max(written), ..in_folders };
                match all.exceeds(most) {
                    Some(resource) => (Self::Over { growth, in_folders }, Some(resource)),
                    None => (Self::NotOurs(growth), None),
                }
            }
        }
    }
}

impl Amount {
    fn exceeds(self, most: Self) -> Option<Resource> {
        let files = (self.files > most.files).then_some(Resource::Files);
        (self.bytes > most.bytes).then_some(Resource::Disk).or(files)
    }

    fn plus(self, more: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(more.bytes),
            files: self.files.saturating_add(more.files),
        }
    }

    fn part(self) -> Self {
        Self { bytes: self.bytes / PART, files: self.files / PART }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const MOST: Amount = Amount { bytes: 80 * MIB, files: 1000 };

    fn amount(mib: u64) -> Amount {
        Amount { bytes: mib * MIB, files: 0 }
    }

    /// What is in the folders, and what running commands have written.
    fn own(mib: u64, written: u64) -> impl FnOnce() -> OwnAmount {
        move || OwnAmount { in_folders: amount(mib), written: written * MIB }
    }

    fn never() -> OwnAmount {
        panic!("the folders need not be read")
    }

    fn over(growth: u64, in_folders: u64) -> State {
        State::Over { growth: amount(growth), in_folders: amount(in_folders) }
    }

    // Mutants: growth by other programs counts; the folders are read at every look.
    #[test]
    fn only_what_the_commands_wrote_ends_them() {
        assert_eq!(State::Below.next(amount(80), MOST, never), (State::Below, None));
        let (state, reached) = State::Below.next(amount(81), MOST, own(5, 5));
        assert_eq!((state, reached), (State::NotOurs(amount(81)), None));
        assert_eq!(state.next(amount(91), MOST, never), (state, None));
        let ended = (over(92, 81), Some(Resource::Disk));
        assert_eq!(state.next(amount(92), MOST, own(81, 0)), ended);
        let nameless = State::Below.next(amount(92), MOST, own(5, 81));
        assert_eq!(nameless, (over(92, 5), Some(Resource::Disk)));
        let files = Amount { bytes: 0, files: 1001 };
        let many = || OwnAmount { in_folders: files, written: 0 };
        let (_, reached) = State::Below.next(files, MOST, many);
        assert_eq!(reached, Some(Resource::Files));
    }

    // Mutants: after the first end everything is allowed; growth by other programs counts then.
    #[test]
    fn after_the_limit_was_reached_only_commands_that_add_more_end() {
        let state = over(92, 85);
        assert_eq!(state.next(amount(93), MOST, never), (state, None), "deleting writes a little");
        assert_eq!(state.next(amount(99), MOST, own(40, 0)), (over(99, 40), None), "others wrote");
        assert_eq!(state.next(amount(99), MOST, own(85, 3)), (over(99, 85), None), "others wrote");
        let ended = Some(Resource::Disk);
        assert_eq!(state.next(amount(99), MOST, own(92, 0)), (over(99, 92), ended));
        assert_eq!(state.next(amount(99), MOST, own(85, 7)), (over(99, 85), ended), "no name");
        assert_eq!(state.next(amount(70), MOST, never), (State::Below, None));
    }
}
