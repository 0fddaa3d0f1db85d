//! Tokens: 256 random bits, of which only a digest is stored, and the file with the owner's token.
//!
//! Every user of the machine who can read the file is the owner. The file is created at the first start and read again
//! whenever it changes, so a new token is valid without a restart. While it cannot be read, no token is valid.

use parking_lot::RwLock;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ostler_base::ids::random_text;
use ostler_base::private;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The prefix of tokens, which people and secret scanners recognise.
const PREFIX: &str = "ostler_";

/// A secret that identifies a caller.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Makes a new random token.
    pub fn random() -> Self {
        Self(format!("{PREFIX}{}", random_text(32)))
    }

    /// The secret itself. Not for logs, and not for URLs.
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

/// The digest of a token, for comparing tokens without storing them.
#[derive(Clone, Copy, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

impl PartialEq for TokenDigest {
    /// Compares in constant time.
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
    /// Identifies the version of the file.
    stamp: Option<Stamp>,
    digest: Option<TokenDigest>,
}

/// Identifies a version of the token file.
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
    /// Opens the file, or creates it with a new token.
    ///
    /// # Errors
    /// When the file cannot be created or read, or others can read it.
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

    /// Whether this is the digest of the current token.
    pub(crate) fn is(&self, digest: &TokenDigest) -> bool {
        let stamp = Stamp::of(&self.path);
        let held = self.held.read();
        if held.stamp == stamp {
            return held.digest.as_ref() == Some(digest);
        }
        drop(held);
        let mut held = self.held.write();
        *held = Held { stamp, digest: read(&self.path).ok().map(|token| token.digest()) };
        held.digest.as_ref() == Some(digest)
    }

    /// Replaces the token. The old one is no longer valid.
    ///
    /// # Errors
    /// When the file cannot be written; the old token then stays valid.
    pub(crate) fn rotate(&self) -> io::Result<Token> {
        let token = Token::random();
        private::replace(&self.path, line(&token).as_bytes())?;
        Ok(token)
    }

    /// The current version of the file; `None` if it does not exist.
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
    // An operator who writes a token into the file must not make it weak by accident.
    if text.len() < 32 || text.chars().any(|c| !c.is_ascii_graphic()) {
        let text = format!(
            "{} contains no valid token: one line of at least 32 letters and digits is needed; remove the file to get a new one",
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
    fn the_token_is_created_once_and_stays() {
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

    // Seen to fail when `eq` compares the first 31 bytes only.
    #[test]
    fn only_the_exact_token_is_valid() {
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

    // Seen to fail when `is` never reads the file again.
    #[test]
    fn a_new_token_is_valid_at_once_and_the_old_one_is_not() {
        let (place, file) = file();
        let old = file.token().unwrap();
        let new = file.rotate().unwrap();
        assert!(file.is(&new.digest()) && !file.is(&old.digest()));
        let path = place.path().join("state/token");
        let by_hand = Token::random();
        private::replace(&path, by_hand.expose().as_bytes()).unwrap();
        assert!(file.is(&by_hand.digest()) && !file.is(&new.digest()));
        std::fs::remove_file(&path).unwrap();
        assert!(!file.is(&by_hand.digest()), "without a file no token is valid");
        std::fs::write(&path, by_hand.expose()).unwrap();
        assert!(!file.is(&by_hand.digest()), "a file that others can read is not used");
    }

    #[test]
    fn a_weak_token_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("token");
        private::create(&path, b"hunter2\n").unwrap();
        let error = TokenFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("contains no valid token"), "{error}");
    }
}
