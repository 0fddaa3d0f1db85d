//! Tokens: 256 bits that nobody can guess, of which only a digest is kept, and the file with the owner's own.
//!
//! Whoever can read the file is the owner. It is made at the first start and looked at again whenever it changes, so a
//! new token counts without a restart; while it cannot be read, no token counts.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ostler_base::ids::random_text;
use ostler_base::private;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// How tokens begin, so that people and scanners know one when they see it.
const PREFIX: &str = "ostler_";

/// A secret that lets somebody in.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new one.
    pub fn random() -> Self {
        Self(format!("{PREFIX}{}", random_text(32)))
    }

    /// What it says. Not for logs, and not for addresses.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn digest(&self) -> TokenDigest {
        TokenDigest::of(&self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token([hidden])")
    }
}

/// What is kept of a token: it tells whether another one is the same, and nothing more.
#[derive(Clone, Copy, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

impl PartialEq for TokenDigest {
    /// In the same time wherever the two differ.
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Hash for TokenDigest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest([hidden])")
    }
}

impl From<TokenDigest> for String {
    fn from(digest: TokenDigest) -> Self {
        URL_SAFE_NO_PAD.encode(digest.0)
    }
}

impl TryFrom<String> for TokenDigest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bytes = URL_SAFE_NO_PAD.decode(&text).ok();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| "a digest is 32 bytes in base64url".to_owned())
    }
}

/// The owner's token, in a file.
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    held: RwLock<Held>,
}

#[derive(Debug)]
struct Held {
    /// What tells one version of the file from another.
    stamp: Option<Stamp>,
    digest: Option<TokenDigest>,
}

/// What tells one version of the token file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let about = std::fs::symlink_metadata(path).ok()?;
        let changed = (about.ctime(), about.ctime_nsec());
        Some(Self { inode: about.ino(), length: about.len(), changed })
    }
}

impl TokenFile {
    /// Opens the file, or makes it with a new token in it.
    ///
    /// # Errors
    /// When it cannot be made or read, or others can read it.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        if let Some(folder) = path.parent() {
            private::folder(folder)?;
        }
        match private::create(&path, line(&Token::random()).as_bytes()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let stamp = Stamp::of(&path);
        let digest = read(&path)?.digest();
        Ok(Self { path, held: RwLock::new(Held { stamp, digest: Some(digest) }) })
    }

    /// Whether this is the digest of the token as it is now.
    pub(crate) fn is(&self, digest: &TokenDigest) -> bool {
        let stamp = Stamp::of(&self.path);
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        if held.stamp == stamp {
            return held.digest.as_ref() == Some(digest);
        }
        drop(held);
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        *held = Held { stamp, digest: read(&self.path).ok().map(|token| token.digest()) };
        held.digest.as_ref() == Some(digest)
    }

    /// A new token; the old one counts no longer.
    ///
    /// # Errors
    /// When the file cannot be written; the old one counts then.
    pub(crate) fn rotate(&self) -> io::Result<Token> {
        let token = Token::random();
        private::replace(&self.path, line(&token).as_bytes())?;
        Ok(token)
    }

    /// Which version of the file is there now; `None` if there is none.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        Stamp::of(&self.path)
    }

    /// The token itself, for a client on this machine.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn token(&self) -> io::Result<Token> {
        read(&self.path)
    }
}

fn line(token: &Token) -> String {
    format!("{}\n", token.0)
}

fn read(path: &Path) -> io::Result<Token> {
    let text = private::read(path)?;
    let text = text.trim();
    // Who writes a token of his own into the file must not make it a weak one by accident.
    if text.len() < 32 || text.chars().any(|c| !c.is_ascii_graphic()) {
        let text = format!(
            "{} holds no token: one line of at least 32 letters and digits is needed; remove the file for a new one",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(Token(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempDir, TokenFile) {
        let place = tempfile::tempdir().unwrap();
        let file = TokenFile::open(place.path().join("state/token")).unwrap();
        (place, file)
    }

    #[test]
    fn a_token_is_made_once_and_kept() {
        let (place, file) = file();
        let token = file.token().unwrap();
        assert_eq!(token.expose().len(), PREFIX.len() + 43, "256 bits");
        let again = TokenFile::open(place.path().join("state/token")).unwrap();
        assert_eq!(again.token().unwrap(), token);
        assert!(again.is(&token.digest()));
        assert_ne!(Token::random(), Token::random());
        assert_eq!(
            format!("{token:?} {:?}", token.digest()),
            "Token([hidden]) TokenDigest([hidden])"
        );
    }

    // Seen to fail when `eq` looks at the first 31 bytes only.
    #[test]
    fn only_the_very_token_counts() {
        let (_place, file) = file();
        let token = file.token().unwrap();
        let text = token.expose();
        for wrong in ["", "ostler_", &text[1..], &format!("{text}x"), &text.to_ascii_uppercase()] {
            assert!(!file.is(&TokenDigest::of(wrong)), "{wrong}");
        }
        let TokenDigest(mut bytes) = token.digest();
        for place in 0..32 {
            bytes[place] ^= 1;
            assert!(!file.is(&TokenDigest(bytes)), "byte {place}");
            bytes[place] ^= 1;
        }
    }

    // Seen to fail when `is` never looks at the file again.
    #[test]
    fn a_new_token_counts_at_once_and_the_old_one_no_longer() {
        let (place, file) = file();
        let old = file.token().unwrap();
        let new = file.rotate().unwrap();
        assert!(file.is(&new.digest()) && !file.is(&old.digest()));
        let path = place.path().join("state/token");
        let by_hand = Token::random();
        private::replace(&path, by_hand.expose().as_bytes()).unwrap();
        assert!(file.is(&by_hand.digest()) && !file.is(&new.digest()));
        std::fs::remove_file(&path).unwrap();
        assert!(!file.is(&by_hand.digest()), "without a file no token counts");
        std::fs::write(&path, by_hand.expose()).unwrap();
        assert!(!file.is(&by_hand.digest()), "a file that others can read does not count");
    }

    #[test]
    fn a_weak_token_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("token");
        private::create(&path, b"hunter2\n").unwrap();
        let error = TokenFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("holds no token"), "{error}");
    }
}
