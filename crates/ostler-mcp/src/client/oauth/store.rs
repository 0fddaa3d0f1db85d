//! One private file per account: tokens, and how the client is registered.
//!
//! A file holds the URL of its server. It is read for that server only, even if two names lead to the same file.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use reqwest::Url;
use rmcp::transport::auth::StoredCredentials;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most bytes of such a file.
const LIMIT: u64 = 1024 * 1024;
/// A token is renewed when it has less than this left.
const SOON: Duration = Duration::from_secs(60);
/// How long to wait for another process that renews the token. Its request has a limit, too.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often to look whether it is done.
const PAUSE: Duration = Duration::from_millis(20);

/// How this client is registered at the authorization server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Registration {
    pub(super) client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    pub(super) redirect_uri: String,
}

/// What a file holds.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredAccount {
    pub(super) registration: Registration,
    pub(super) tokens: StoredCredentials,
}

#[derive(Serialize, Deserialize)]
struct Document {
    server: String,
    url: String,
    /// Which of several accounts at the server it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account_name: Option<String>,
    #[serde(flatten)]
    account: StoredAccount,
}

/// The file of an account, or nothing.
#[derive(Clone)]
pub(super) struct Store {
    path: Option<PathBuf>,
    server: String,
    url: String,
    account_name: Option<String>,
}

/// The right to change the file. Dropping it ends it.
pub(super) struct Lock(#[expect(dead_code, reason = "held, not used")] Option<File>);

impl Store {
    pub(super) fn new(
        folder: Option<PathBuf>,
        server: &str,
        url: &Url,
        account_name: Option<String>,
    ) -> Self {
        let name = file_name(server, url, account_name.as_deref());
        let path = folder.map(|folder| folder.join(name));
        Self { path, server: server.to_owned(), url: url.to_string(), account_name }
    }

    /// Whether there is a file, or can be one.
    pub(super) fn has_place(&self) -> bool {
        self.path.is_some()
    }

    /// Keeps other processes from changing the file. Many authorization servers accept a refresh token once and end
    /// all tokens of the account if it comes twice, so two processes must not renew a token at the same time.
    ///
    /// # Errors
    /// When another process does not let go of it.
    pub(super) async fn lock(&self) -> Result<Lock, String> {
        let Some(path) = self.path.clone() else { return Ok(Lock(None)) };
        blocking(move || lock(&path).map_err(|error| failed("lock", &path, &error)).map(Lock)).await
    }

    pub(super) async fn load(&self) -> Result<Option<StoredAccount>, String> {
        let Some(path) = self.path.clone() else { return Ok(None) };
        let read = blocking(move || match ostler_files::read_text(&path, LIMIT) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", &path, &error)),
        });
        let Some(text) = read.await? else { return Ok(None) };
        // A damaged file means signing in again, which replaces it.
        let document = serde_json::from_str::<Document>(&text).ok();
        let is_ours = |it: &Document| {
            it.url == self.url && it.server == self.server && it.account_name == self.account_name
        };
        Ok(document.filter(is_ours).map(|document| document.account))
    }

    pub(super) async fn save(&self, account: StoredAccount) -> Result<(), String> {
        let Some(path) = self.path.clone() else { return Ok(()) };
        let (server, url) = (self.server.clone(), self.url.clone());
        let account_name = self.account_name.clone();
        let document = serde_json::to_vec(&Document { server, url, account_name, account });
        let document = document.map_err(|error| error.to_string())?;
        let write = move || {
            if let Some(folder) = path.parent() {
                let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
                made.map_err(|error| failed("create", folder, &error))?;
            }
            ostler_files::replace_with(&path, 0o600, |file| file.write_all(&document))
                .map_err(|error| failed("write", &path, &error))
        };
        blocking(write).await
    }

    pub(super) async fn delete(&self) -> Result<(), String> {
        let Some(path) = self.path.clone() else { return Ok(()) };
        let remove = move || match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("delete", &path, &error))
            }
            _ => Ok(()),
        };
        blocking(remove).await
    }
}

/// Locks the file itself; nothing if it is missing. It is replaced when it is written, so the file that was locked must
/// still be the one at the path.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let begun = Instant::now();
    let missing = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Ok(None),
        _ => Err(error),
    };
    loop {
        let file = match ostler_files::open(path) {
            Ok(file) => file,
            Err(error) => return missing(error),
        };
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(error.into()),
            }
        }
        match fs::symlink_metadata(path) {
            Ok(now) if now.ino() == file.metadata()?.ino() => return Ok(Some(file)),
            Ok(_) => {}
            Err(error) => return missing(error),
        }
    }
}

async fn blocking<T: Send + 'static>(
    task: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(task).await.map_err(|error| error.to_string())?
}

fn failed(verb: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {verb} the file of tokens {}: {error}", path.display())
}

/// A name for people, and a number that keeps servers apart.
fn file_name(server: &str, url: &Url, account_name: Option<&str>) -> String {
    let plain = |it: char| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' };
    let short: String = server.chars().take(40).map(plain).collect();
    // FNV-1a: the same in every version of this program.
    let account = account_name.map(|name| format!("\n{name}")).unwrap_or_default();
    let number =
        format!("{server}\n{url}{account}").bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("{short}-{number:016x}.json")
}

/// The token that requests carry.
pub(super) struct AccessToken {
    pub(super) text: String,
    pub(super) expires_soon: bool,
}

impl AccessToken {
    pub(super) fn of(stored: &StoredCredentials) -> Option<Self> {
        // The token types of `rmcp` belong to a crate that it does not export; their JSON is that of RFC 6749.
        let response = serde_json::to_value(&stored.token_response).ok()?;
        let text = response["access_token"].as_str()?.to_owned();
        let expires_at = stored.token_received_at.zip(response["expires_in"].as_u64());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + SOON;
        let expires_soon = expires_at
            .is_some_and(|(received, lasts)| received.saturating_add(lasts) < now.as_secs());
        Some(Self { text, expires_soon: expires_soon && has_refresh_token(&response) })
    }
}

/// The token that ends the whole account when it is revoked: the refresh token, or else the access token.
pub(super) fn main_token(stored: &StoredCredentials) -> Option<String> {
    let response = serde_json::to_value(&stored.token_response).ok()?;
    let token = [&response["refresh_token"], &response["access_token"]];
    token.iter().find_map(|token| token.as_str().map(str::to_owned))
}

/// A token that cannot be renewed is used until the server refuses it.
fn has_refresh_token(response: &Value) -> bool {
    response["refresh_token"].is_string()
}
