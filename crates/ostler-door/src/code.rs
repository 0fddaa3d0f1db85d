//! How a browser signs in: a caller with a token gets a one-time code. The browser exchanges it for a cookie that no
//! script can read, and a page key that only the server's own page has. A browser sends its cookies to every port of a
//! host, so a cookie alone proves nothing: a program that an agent started on another port may have received it.
//!
//! A code and a cookie depend on the token for which they were issued: if it is revoked, its user's role changes or the
//! owner's token is renewed, this applies to them at once. Both are stored as digests: codes in memory, cookies also in
//! a file, so that browsers stay signed in after a restart ([`super::browsers`]).

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::browsers::{COOKIE_LASTS, Cookies, MOST, SignIn};
use super::changes::Changes;
use super::token::{Token, TokenDigest};

/// How long a code is valid.
pub(crate) const CODE_LASTS: Duration = Duration::from_secs(5 * 60);

/// Unused codes, and signed-in browsers.
#[derive(Debug, Default)]
pub struct Browsers {
    codes: Mutex<HashMap<TokenDigest, Code>>,
    pub(super) cookies: Cookies,
}

#[derive(Clone, Copy, Debug)]
struct Code {
    /// The token for which the code was issued.
    grant: TokenDigest,
    made: Instant,
}

impl Browsers {
    /// Uses these cookies.
    pub fn new(cookies: Cookies) -> Self {
        Self { codes: Mutex::default(), cookies }
    }

    /// Makes a code for one browser.
    pub fn code(&self, grant: TokenDigest, now: Instant) -> Token {
        let mut codes = self.codes.lock();
        if codes.len() >= MOST
            && let Some(oldest) = codes.iter().min_by_key(|(_, it)| it.made).map(|(key, _)| *key)
        {
            codes.remove(&oldest);
        }
        let code = Token::random();
        codes.insert(code.digest(), Code { grant, made: now });
        code
    }

    /// Exchanges a code, which is used up by that, for a sign-in. The second value is the token for which the code was
    /// issued. `label` is the browser's name for people.
    pub(crate) fn redeem(
        &self,
        code: &str,
        label: &str,
        now: Instant,
    ) -> Option<(SignIn, TokenDigest)> {
        let mut codes = self.codes.lock();
        let Code { grant, made } = codes.remove(&TokenDigest::of(code))?;
        drop(codes);
        let is_fresh = now.saturating_duration_since(made) < CODE_LASTS;
        is_fresh.then(|| (self.cookies.add(grant, label, now), grant))
    }

    /// The token for which the browser with this cookie and page key signed in.
    pub(crate) fn grant(&self, cookie: &str, page_key: &str, now: Instant) -> Option<TokenDigest> {
        self.cookies.grant(&TokenDigest::of(cookie), &TokenDigest::of(page_key), now)
    }

    /// Whether the browser with this cookie is still signed in.
    pub(super) fn is_signed_in(&self, cookie: &TokenDigest, now: Instant) -> bool {
        self.cookies.is_signed_in(cookie, now)
    }

    /// Notifies of every sign-in that ended.
    pub(super) fn changes(&self) -> &Changes {
        &self.cookies.changes
    }

    /// Signs out the browser with this cookie.
    pub fn leave(&self, cookie: &str) -> std::io::Result<()> {
        self.cookies.remove(&TokenDigest::of(cookie))
    }
}

/// The cookie's name. Cookies do not depend on ports, so two servers on one machine need two names.
pub(crate) fn cookie_name(port: u16) -> String {
    format!("ostler_session_{port}")
}

/// The header that sets the cookie: no script can read it, and other sites cannot send it.
pub(crate) fn set_cookie(name: &str, cookie: &Token, is_secure: bool) -> String {
    cookie_line(name, cookie.expose(), COOKIE_LASTS.as_secs(), is_secure)
}

/// The header that removes the cookie.
pub(crate) fn clear_cookie(name: &str, is_secure: bool) -> String {
    cookie_line(name, "", 0, is_secure)
}

fn cookie_line(name: &str, value: &str, seconds: u64, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::browsers::COOKIE_IDLE;

    fn later(now: Instant, by: Duration) -> Instant {
        now.checked_add(by).unwrap()
    }

    // Seen to fail when `redeem` does not remove the code.
    #[test]
    fn a_code_can_be_used_once() {
        let (browsers, now) = (Browsers::default(), Instant::now());
        let grant = TokenDigest::of("a token");
        let code = browsers.code(grant, now);
        assert!(browsers.redeem("ostler_guess", "", now).is_none());
        let (SignIn { cookie, page_key }, of) = browsers.redeem(code.expose(), "", now).unwrap();
        let granted = |cookie: &Token| browsers.grant(cookie.expose(), page_key.expose(), now);
        assert_eq!((of, granted(&cookie)), (grant, Some(grant)));
        assert!(browsers.redeem(code.expose(), "", now).is_none(), "the second time");
        assert!(granted(&code).is_none(), "a code is not a cookie");
        assert!(granted(&page_key).is_none(), "a page key is not a cookie");
        assert!(browsers.redeem(cookie.expose(), "", now).is_none(), "a cookie is not a code");
        assert!(browsers.redeem(page_key.expose(), "", now).is_none(), "a page key is not a code");
        for wrong in ["", cookie.expose(), &page_key.expose()[1..]] {
            assert!(browsers.grant(cookie.expose(), wrong, now).is_none(), "{wrong}");
        }
        browsers.leave(cookie.expose()).unwrap();
        assert!(granted(&cookie).is_none());
    }

    // Seen to fail without the limit of an unused cookie, and without that of the code.
    #[test]
    fn codes_and_cookies_expire() {
        let (browsers, start) = (Browsers::default(), Instant::now());
        let grant = TokenDigest::of("a token");
        let late = browsers.code(grant, start);
        assert!(browsers.redeem(late.expose(), "", later(start, CODE_LASTS)).is_none());
        let cookie = |now| {
            let code = browsers.code(grant, now);
            browsers.redeem(code.expose(), "", now).unwrap().0
        };
        let (idle, busy) = (cookie(start), cookie(start));
        let granted = |it: &SignIn, now| {
            browsers.grant(it.cookie.expose(), it.page_key.expose(), now).is_some()
        };
        let mut now = start;
        let mut steps = 0;
        while granted(&busy, now) {
            now = later(now, COOKIE_IDLE / 2);
            steps += 1;
        }
        assert_eq!(steps, 60, "in constant use it is valid for thirty days");
        assert!(!granted(&idle, later(start, COOKIE_IDLE)));
    }

    #[test]
    fn the_number_of_codes_and_cookies_is_limited() {
        let (browsers, start) = (Browsers::default(), Instant::now());
        let grant = TokenDigest::of("a token");
        let first = browsers.code(grant, start);
        for number in 0..MOST {
            browsers.code(grant, later(start, Duration::from_millis(1 + number as u64)));
        }
        assert_eq!(browsers.codes.lock().len(), MOST);
        assert!(browsers.redeem(first.expose(), "", start).is_none());
    }

    #[test]
    fn the_cookie_is_for_this_site_only() {
        let token = Token::random();
        let line = set_cookie(&cookie_name(7), &token, false);
        let value = token.expose();
        let expected =
            format!("ostler_session_7={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000");
        assert_eq!(line, expected);
        assert!(set_cookie("x", &token, true).ends_with("; Secure"));
        assert!(
            clear_cookie("x", false).starts_with("x=; ")
                && clear_cookie("x", false).contains("Max-Age=0")
        );
    }
}
