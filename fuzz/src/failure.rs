//! Catches panics of targets, deduplicates them, and saves their input.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::{env, fs, panic};

use ostler_fuzz::Target;

/// A message may quote a whole frame twice; its start is enough to recognise it.
const LONGEST_MESSAGE: usize = 3_000;

thread_local! {
    // `catch_unwind` does not return the location of the panic; only the hook gets it.
    static LAST: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

#[derive(Clone, Debug)]
pub(crate) struct Panic {
    pub(crate) location: String,
    pub(crate) message: String,
}

impl Panic {
    /// The same for the same check of the same type, whatever the input was.
    pub(crate) fn check(&self) -> String {
        let subject = self.message.split(':').next().unwrap_or_default();
        format!("{} {subject}", self.location)
    }
}

/// Keeps panics for [`caught`] instead of printing them.
pub(crate) fn remember_panics() {
    panic::set_hook(Box::new(|info| {
        let location = info.location().map(ToString::to_string).unwrap_or_default();
        let message = info.payload_as_str().unwrap_or("no message").to_owned();
        LAST.set(Some(Panic { location, message: shortened(message) }));
    }));
}

/// Runs the target; its panic is the error.
pub(crate) fn caught(target: Target, input: &[u8]) -> Result<(), Panic> {
    panic::catch_unwind(|| target(input)).map_err(|_| {
        let unknown = Panic { location: "unknown".to_owned(), message: "no message".to_owned() };
        LAST.take().unwrap_or(unknown)
    })
}

/// What went wrong in a run, one of each kind.
#[derive(Default)]
pub(crate) struct Failures(Mutex<BTreeSet<String>>);

impl Failures {
    /// Records a panic. `false` if the same check of the same target and type has failed before: one defect fails
    /// thousands of times in a run.
    pub(crate) fn is_new(&self, target: &str, panic: &Panic) -> bool {
        let key = format!("{target} {}", panic.check());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Saves the input to a file and reports it.
    pub(crate) fn report(&self, target: &str, panic: &Panic, input: &[u8]) {
        println!("fuzz: {target} failed at {}: {}", panic.location, panic.message);
        let path = folder().join(format!("{:016x}", checksum(input)));
        let written = fs::create_dir_all(folder()).and_then(|()| fs::write(&path, input));
        match written {
            Ok(()) => println!("fuzz: {} bytes of input in {}", input.len(), path.display()),
            Err(error) => println!("fuzz: could not write {}: {error}", path.display()),
        }
    }
}

fn folder() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target");
    target.unwrap_or_else(default).join("fuzz-failures")
}

fn shortened(mut message: String) -> String {
    if message.len() > LONGEST_MESSAGE {
        let end = message.floor_char_boundary(LONGEST_MESSAGE);
        message.truncate(end);
        message.push('…');
    }
    message
}

/// FNV-1a, for a name that is the same in every run.
fn checksum(input: &[u8]) -> u64 {
    input.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
