//! Ids: a prefix for the kind of thing, and random characters that cannot be guessed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// A new random id such as `run_5f0c…`.
pub fn new(kind: &str) -> String {
    format!("{kind}_{}", Uuid::new_v4().simple())
}

/// An id derived from `what`: equal input always gives the same id.
pub fn of(kind: &str, what: &str) -> String {
    let digest = Sha256::digest(format!("{kind} {what}"));
    format!("{kind}_{digest:.32x}")
}

/// This many random bytes, encoded in characters that are safe in URLs and file names.
pub fn random_text(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).expect("a machine without randomness can keep no secrets");
    URL_SAFE_NO_PAD.encode(random)
}
