//! Signed-in browsers: digests of their cookies and page keys, in memory and in a file that only its owner can read.
//! The file has times of the system clock; in memory they are instants of this process.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ostler_base::ids::random_text;
use ostler_base::private;
use serde::{Deserialize, Serialize};

use super::changes::Changes;
use super::token::{Token, TokenDigest};

/// How long an unused cookie is valid.
pub(super) const COOKIE_IDLE: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a cookie is valid at most.
pub(crate) const COOKIE_LASTS: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The maximum number of codes, and of cookies. Further ones replace the oldest.
pub(super) const MOST: usize = 1_000;

/// How much later a cookie may have been used than the file says. The file is not written for every request.
const WRITTEN_EVERY: Duration = Duration::from_secs(60 * 60);
const LONGEST_LABEL: usize = 80;

/// The valid cookies.
#[derive(Debug, Default)]
pub struct Cookies {
    known: Mutex<HashMap<TokenDigest, Cookie>>,
    /// The file, if they are stored.
    file: Option<PathBuf>,
    /// Notifies of every sign-in that ended.
    pub(super) changes: Changes,
}

/// The two secrets of a signed-in browser: every request needs both.
pub(crate) struct SignIn {
    /// Sent by the browser, also to servers on other ports of the same host.
    pub(crate) cookie: Token,
    /// Stored by the page; only pages of the same host and port can read it.
    pub(crate) page_key: Token,
}

/// A signed-in browser.
#[derive(Clone, Debug)]
pub struct Cookie {
    /// Its public id, which is not a secret.
    pub id: String,
    /// The token for which the browser signed in.
    pub(crate) grant: TokenDigest,
    /// The digest of the key that its page sends with every request.
    page_key: TokenDigest,
    /// Its name for people, such as `Firefox on Linux`.
    pub label: String,
    made: Instant,
    used: Instant,
    /// When it was last used, according to the file.
    written: Instant,
}

/// A signed-in browser in the file. Times are in milliseconds since 1970.
#[derive(Serialize, Deserialize)]
struct StoredBrowser {
    id: String,
    digest: TokenDigest,
    grant: TokenDigest,
    /// Missing in files of earlier versions, whose browsers have to sign in again.
    #[serde(default)]
    page_key: Option<TokenDigest>,
    #[serde(default)]
    label: String,
    made: u64,
    used: u64,
}

/// When a browser signed in, was last active, and has to sign in again.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub made: u64,
    pub used: u64,
    pub expires: u64,
}

impl Cookie {
    fn new(grant: TokenDigest, page_key: TokenDigest, label: &str, now: Instant) -> Self {
        let label = label.chars().filter(|c| !c.is_control()).take(LONGEST_LABEL);
        let id = format!("browser_{}", random_text(12));
        Self { id, grant, page_key, label: label.collect(), made: now, used: now, written: now }
    }

    fn is_over(&self, now: Instant) -> bool {
        let is_over = |since: Instant, limit| now.saturating_duration_since(since) >= limit;
        is_over(self.made, COOKIE_LASTS) || is_over(self.used, COOKIE_IDLE)
    }

    /// The times by the system clock.
    pub(crate) fn times(&self) -> Times {
        let times = Wall::now();
        let ends = (self.made + COOKIE_LASTS).min(self.used + COOKIE_IDLE);
        let [made, used, expires] = [self.made, self.used, ends].map(|it| times.millis(it));
        Times { made, used, expires }
    }
}

impl Cookies {
    /// Reads the cookies of a file. The file may be missing.
    ///
    /// # Errors
    /// When the file exists and cannot be read: a browser that was signed out must not become valid again.
    pub fn load(file: PathBuf) -> io::Result<Self> {
        let text = match private::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => "[]".to_owned(),
            Err(error) => return Err(error),
        };
        let stored: Vec<StoredBrowser> = serde_json::from_str(&text).map_err(|error| {
            let text =
                format!("{} is not a valid file of signed-in browsers: {error}", file.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })?;
        let (times, now) = (Wall::now(), Instant::now());
        let cookie = |it: StoredBrowser| {
            let (made, used) = (times.instant(it.made)?, times.instant(it.used)?);
            let StoredBrowser { id, grant, label, page_key, .. } = it;
            let cookie =
                Cookie { id, grant, page_key: page_key?, label, made, used, written: used };
            (!cookie.is_over(now)).then_some((it.digest, cookie))
        };
        let known = stored.into_iter().filter_map(cookie).take(MOST).collect();
        Ok(Self { known: Mutex::new(known), file: Some(file), changes: Changes::default() })
    }

    /// Signs a browser in. If the file cannot be written, the sign-in is valid until the server ends.
    pub(super) fn add(&self, grant: TokenDigest, label: &str, now: Instant) -> SignIn {
        let (token, page_key) = (Token::random(), Token::random());
        let cookie = Cookie::new(grant, page_key.digest(), label, now);
        let mut known = self.lock();
        if known.len() >= MOST
            && let Some(oldest) = known.iter().min_by_key(|(_, it)| it.used).map(|(key, _)| *key)
        {
            known.remove(&oldest);
            self.changes.notify();
        }
        known.insert(token.digest(), cookie);
        self.try_save(&known);
        SignIn { cookie: token, page_key }
    }

    /// The token for which a browser signed in, if the page key belongs to the cookie.
    pub(super) fn grant(
        &self,
        digest: &TokenDigest,
        page_key: &TokenDigest,
        now: Instant,
    ) -> Option<TokenDigest> {
        let mut known = self.lock();
        let cookie = known.get_mut(digest)?;
        if cookie.page_key != *page_key {
            return None;
        }
        if cookie.is_over(now) {
            known.remove(digest);
            return None;
        }
        cookie.used = now;
        let grant = cookie.grant;
        if now.saturating_duration_since(cookie.written) >= WRITTEN_EVERY {
            cookie.written = now;
            self.try_save(&known);
        }
        Some(grant)
    }

    /// Whether a cookie is still valid. This does not count as a use of it.
    pub(super) fn is_signed_in(&self, digest: &TokenDigest, now: Instant) -> bool {
        self.lock().get(digest).is_some_and(|cookie| !cookie.is_over(now))
    }

    /// All valid cookies, the last used first.
    pub fn list(&self, now: Instant) -> Vec<(TokenDigest, Cookie)> {
        let known = self.lock();
        let mut list: Vec<_> = known.iter().map(|(key, it)| (*key, it.clone())).collect();
        list.retain(|(_, cookie)| !cookie.is_over(now));
        list.sort_by_key(|(_, cookie)| std::cmp::Reverse(cookie.used));
        list
    }

    /// Signs a browser out.
    ///
    /// # Errors
    /// When the file cannot be written: the browser is signed out, but would be signed in again after a restart.
    pub fn remove(&self, digest: &TokenDigest) -> io::Result<()> {
        let mut known = self.lock();
        match known.remove(digest) {
            Some(_) => {
                self.changes.notify();
                self.save(&known)
            }
            None => Ok(()),
        }
    }

    fn try_save(&self, known: &HashMap<TokenDigest, Cookie>) {
        if let Err(error) = self.save(known) {
            tracing::warn!(%error, "signed-in browsers cannot be stored, and need a new code after a restart");
        }
    }

    fn save(&self, known: &HashMap<TokenDigest, Cookie>) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let times = Wall::now();
        let stored: Vec<StoredBrowser> = known
            .iter()
            .map(|(digest, it)| StoredBrowser {
                id: it.id.clone(),
                digest: *digest,
                grant: it.grant,
                page_key: Some(it.page_key),
                label: it.label.clone(),
                made: times.millis(it.made),
                used: times.millis(it.used),
            })
            .collect();
        private::replace(file, serde_json::to_string(&stored)?.as_bytes())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TokenDigest, Cookie>> {
        self.known.lock()
    }
}

/// The same moment by both clocks.
struct Wall {
    now: Instant,
    millis: u64,
}

impl Wall {
    fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { now: Instant::now(), millis: u64::try_from(since.as_millis()).unwrap_or(u64::MAX) }
    }

    fn millis(&self, at: Instant) -> u64 {
        let millis = |by: Duration| u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        match at.checked_duration_since(self.now) {
            Some(later) => self.millis.saturating_add(millis(later)),
            None => self.millis.saturating_sub(millis(self.now - at)),
        }
    }

    /// A moment of the past. A time in the future, because the clock was set back, counts as now. `None` if it is too
    /// long ago to matter.
    fn instant(&self, millis: u64) -> Option<Instant> {
        let ago = Duration::from_millis(self.millis.saturating_sub(millis));
        self.now.checked_sub(ago)
    }
}

/// The name of a browser for people, from its `User-Agent`.
pub(super) fn label(agent: &str) -> String {
    let first = |words: &[(&str, &'static str)]| {
        words.iter().find(|(word, _)| agent.contains(word)).map(|(_, name)| *name)
    };
    let browser = first(&[
        ("Firefox/", "Firefox"),
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ]);
    let system = first(&[
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Android", "Android"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(name), None) | (None, Some(name)) => name.to_owned(),
        (None, None) => agent.chars().take(LONGEST_LABEL).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Seen to fail when the cookie is removed from memory only.
    #[test]
    fn a_browser_stays_signed_in_after_a_restart_until_it_is_signed_out() {
        let place = tempfile::tempdir().unwrap();
        let file = || place.path().join("browsers.json");
        let (grant, now) = (TokenDigest::of("a token"), Instant::now());
        let before = Cookies::load(file()).unwrap();
        let (stays, goes) = (before.add(grant, "one", now), before.add(grant, "two", now));
        before.remove(&goes.cookie.digest()).unwrap();
        let after = Cookies::load(file()).unwrap();
        let now = Instant::now();
        let granted = |cookie: &SignIn, key: &SignIn| {
            after.grant(&cookie.cookie.digest(), &key.page_key.digest(), now)
        };
        assert_eq!(granted(&stays, &stays), Some(grant));
        assert_eq!(granted(&stays, &goes), None, "with the page key of another browser");
        assert_eq!(granted(&goes, &goes), None);
        let stored = std::fs::read_to_string(file()).unwrap();
        for secret in [&stays.cookie, &stays.page_key] {
            assert!(!stored.contains(secret.expose()), "only digests are stored");
        }
        let list = after.list(now);
        let times = list[0].1.times();
        assert_eq!((list.len(), list[0].1.label.as_str()), (1, "one"));
        assert!(times.made <= times.used && times.used < times.expires);
    }

    // Seen to fail when times of the file count as now.
    #[test]
    fn a_cookie_that_expired_while_the_server_was_off_is_expired() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("browsers.json");
        let wall = Wall::now().millis;
        let stored = |ago: Duration| StoredBrowser {
            id: "browser_x".to_owned(),
            digest: TokenDigest::of(&format!("{ago:?}")),
            grant: TokenDigest::of("a token"),
            page_key: Some(TokenDigest::of("a key")),
            label: String::new(),
            made: wall - u64::try_from(ago.as_millis()).unwrap(),
            used: wall - u64::try_from(ago.as_millis()).unwrap(),
        };
        let of_an_earlier_version = StoredBrowser { page_key: None, ..stored(COOKIE_IDLE / 3) };
        let ran_out = stored(COOKIE_IDLE + Duration::from_secs(1));
        let all = [stored(COOKIE_IDLE / 2), ran_out, of_an_earlier_version];
        private::replace(&file, serde_json::to_string(&all).unwrap().as_bytes()).unwrap();
        let cookies = Cookies::load(file.clone()).unwrap();
        assert_eq!(cookies.list(Instant::now()).len(), 1);
        std::fs::write(&file, "{").unwrap();
        assert!(Cookies::load(file).is_err(), "an unreadable file is an error");
    }

    #[test]
    fn browsers_have_names_that_people_know() {
        let firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
        assert_eq!(label(firefox), "Firefox on Linux");
        let phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 Version/18.0 Mobile Safari/604.1";
        assert_eq!(label(phone), "Safari on iPhone");
        assert_eq!(label("curl/8"), "curl/8");
    }
}
