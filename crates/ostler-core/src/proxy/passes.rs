//! Tokens that stand in for the key, one for each engine.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ostler_door::token::{Token, TokenDigest};

use super::usage::Used;

/// The valid tokens, with the sessions for which they were issued.
#[derive(Default)]
pub(super) struct Passes(Mutex<HashMap<TokenDigest, Admitted>>);

/// The session for which a token was issued, and its usage.
#[derive(Clone)]
pub(super) struct Admitted {
    pub(super) session: String,
    pub(super) used: Arc<Used>,
}

impl Passes {
    pub(super) fn issue(self: &Arc<Self>, session: &str, base: String) -> Pass {
        // It has the format of the server's tokens, so it is redacted in logs and events like them.
        let token = Token::random();
        let mut known = self.0.lock();
        let admitted = Admitted { session: session.to_owned(), used: Arc::default() };
        known.insert(token.digest(), admitted);
        Pass { token, base, passes: Arc::clone(self) }
    }

    /// The session for which a token was issued, if the token is valid.
    pub(super) fn find(&self, word: &str) -> Option<Admitted> {
        let known = self.0.lock();
        known.get(&TokenDigest::of(word)).cloned()
    }
}

/// An engine's access to the model. On drop, the token becomes invalid.
pub(crate) struct Pass {
    token: Token,
    base: String,
    passes: Arc<Passes>,
}

impl Pass {
    /// Adds the pass to the variables that every engine reads.
    pub(crate) fn give_to(&self, variables: &mut BTreeMap<String, String>) {
        variables.insert("ANTHROPIC_BASE_URL".to_owned(), self.base.clone());
        variables.insert("ANTHROPIC_API_KEY".to_owned(), self.token.expose().to_owned());
        // Requests to this proxy must not go through a proxy of the operator.
        for name in ["NO_PROXY", "no_proxy"] {
            let known = variables.entry(name.to_owned()).or_default();
            if !known.split(',').any(|host| host.trim() == "127.0.0.1") {
                let comma = if known.is_empty() { "" } else { "," };
                known.push_str(comma);
                known.push_str("127.0.0.1");
            }
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut known = self.passes.0.lock();
        if let Some(Admitted { session, used }) = known.remove(&self.token.digest()) {
            let (tokens, usd) = used.total();
            tracing::debug!(session, tokens, usd, "an engine has ended");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Seen to fail without `Drop`.
    #[test]
    fn a_token_is_valid_until_its_engine_ends() {
        let passes = Arc::<Passes>::default();
        let (one, two) =
            (passes.issue("a", "http://x".into()), passes.issue("b", "http://x".into()));
        let word = |pass: &Pass| {
            let mut variables = BTreeMap::from([("NO_PROXY".to_owned(), "a.example".to_owned())]);
            pass.give_to(&mut variables);
            pass.give_to(&mut variables);
            assert_eq!(variables["NO_PROXY"], "a.example,127.0.0.1");
            assert_eq!(variables["no_proxy"], "127.0.0.1");
            variables["ANTHROPIC_API_KEY"].clone()
        };
        let (first, second) = (word(&one), word(&two));
        let session = |word: &str| passes.find(word).map(|found| found.session);
        assert_eq!(session(&first).as_deref(), Some("a"));
        assert_eq!(session(""), None);
        drop(one);
        assert_eq!(session(&first), None);
        assert_eq!(session(&second).as_deref(), Some("b"));
    }
}
