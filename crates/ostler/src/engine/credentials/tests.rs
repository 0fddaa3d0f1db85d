//! Which credential counts, and that none leaves its place.

use std::collections::BTreeMap;
use std::path::Path;

use ostler_engine::settings::{Folders, Sources, load};
use ostler_proto::launch::Launch;
use serde_json::json;

use super::*;

/// A home with a login and with a managed key, if wanted.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(home.path().join(".claude")).unwrap();
        home
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn log_in(&self, token: &str) {
        let file = json!({"claudeAiOauth": {"accessToken": token, "subscriptionType": "max"}});
        std::fs::write(self.path().join(".claude/.credentials.json"), file.to_string()).unwrap();
    }

    fn find(&self, settings: Value, variables: &[(&str, &str)]) -> Option<FoundCredential> {
        let flag = Some(settings.to_string());
        let sources = Sources { flag, ..Sources::default() };
        let settings = load(&Folders::default(), &sources).unwrap();
        let mut context = StartContext::new(Launch::default(), "/");
        let own = [("HOME", self.path().to_str().unwrap()), ("PATH", "/usr/bin:/bin")];
        let all = own.iter().chain(variables);
        let variables: BTreeMap<_, _> =
            all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        context.env = Environment { replaces: true, variables };
        find(&context, &settings).unwrap()
    }
}

// Mutants: each pair of neighbours in the order swapped.
#[test]
fn the_first_credential_in_the_documented_order_counts() {
    let home = Home::new();
    let found = |settings: Value, variables: &[(&str, &str)]| {
        let found = home.find(settings, variables)?;
        Some((found.credential.secrets().join(" "), found.source))
    };
    assert_eq!(found(json!({}), &[]), None);
    std::fs::write(home.path().join(".claude.json"), r#"{"primaryApiKey": "managed"}"#).unwrap();
    let some = |secret: &str, source| Some((secret.to_owned(), source));
    assert_eq!(found(json!({}), &[]), some("managed", CredentialSource::ManagedKey));
    home.log_in("access");
    assert_eq!(found(json!({}), &[]), some("access", CredentialSource::Login));
    let token = (LOGIN_TOKEN, "long-lived");
    assert_eq!(found(json!({}), &[token]), some("long-lived", CredentialSource::LoginToken));
    let helper = json!({"apiKeyHelper": "echo h"});
    assert_eq!(found(helper.clone(), &[token]), some("h h", CredentialSource::Helper));
    let bearer = ("ANTHROPIC_AUTH_TOKEN", "t");
    assert_eq!(found(helper.clone(), &[token, bearer]), some("t", CredentialSource::AuthToken));
    let key = ("ANTHROPIC_API_KEY", "k");
    assert_eq!(found(helper, &[token, key]), some("k", CredentialSource::ApiKey));
    assert_eq!(
        found(json!({}), &[(LOGIN_TOKEN, " ")]),
        some("access", CredentialSource::Login),
        "an empty variable counts as absent"
    );
    let elsewhere = tempfile::tempdir().unwrap();
    let folder = ("CLAUDE_CONFIG_DIR", elsewhere.path().to_str().unwrap());
    assert_eq!(found(json!({}), &[folder]), None, "another folder has no login");
}

// Mutant: `text` contains the credential.
#[test]
fn what_is_told_about_a_credential_never_contains_it() {
    let home = Home::new();
    home.log_in("hush-access");
    for variables in [&[][..], &[(LOGIN_TOKEN, "hush-token")], &[("ANTHROPIC_API_KEY", "hush")]] {
        let found = home.find(json!({}), variables).unwrap();
        assert!(!format!("{found:?} {:?}", found.source.account()).contains("hush"), "{found:?}");
    }
}

#[test]
fn the_account_names_the_source_of_a_key_or_of_a_token() {
    let of = |source: CredentialSource| {
        let account = source.account();
        (account.token_source.unwrap(), account.api_key_source.unwrap())
    };
    let pair = |token: &str, key: &str| (token.to_owned(), key.to_owned());
    assert_eq!(of(CredentialSource::Login), pair("claude.ai", "none"));
    assert_eq!(of(CredentialSource::LoginToken), pair(LOGIN_TOKEN, "none"));
    assert_eq!(of(CredentialSource::ManagedKey), pair("none", "/login managed key"));
}

// Mutants: the variable is ignored; a blank one is invalid.
#[test]
fn a_key_from_a_command_is_used_for_the_time_that_is_set() {
    let minutes = Duration::from_secs(5 * 60);
    let every = |value: Option<&str>| renewed_every(value.map(str::to_owned));
    assert_eq!(every(None).unwrap(), minutes);
    assert_eq!(every(Some(" ")).unwrap(), minutes);
    assert_eq!(every(Some(" 1500 ")).unwrap(), Duration::from_millis(1500));
    let error = every(Some("soon")).unwrap_err().to_string();
    assert!(
        error.contains("CLAUDE_CODE_API_KEY_HELPER_TTL_MS") && error.contains("soon"),
        "{error}"
    );
}
