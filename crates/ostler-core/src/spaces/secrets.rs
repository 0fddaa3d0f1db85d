//! Secrets that agents' commands may have: names and values in the operator's file `secrets.json`.
//!
//! A space lists the names of its secrets, and only admins of the server change that list. Commands of its sessions get
//! them as environment variables. They are redacted in everything that is logged or sent.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use ostler_base::error::{ApiError, Fallible, shown};
use ostler_base::private;

use crate::confine::own_files::SECRETS;
use crate::confine::redact::Redactor;

/// Prefixes of names that mean something to engines, shells and the dynamic loader.
const RESERVED: [&str; 9] =
    ["ANTHROPIC_", "CLAUDE_", "OSTLER", "LD_", "DYLD_", "BASH_", "NODE_OPTIONS", "PYTHON", "GIT_"];
const RESERVED_NAMES: [&str; 8] = ["PATH", "HOME", "ENV", "IFS", "SHELL", "TMPDIR", "TZ", "USER"];

/// Reads the operator's secrets. Without the file there are none.
///
/// # Errors
/// When the file is invalid, or others can read it.
pub(crate) fn load(data: &Path, redactor: &Redactor) -> Fallible<BTreeMap<String, String>> {
    let file = data.join(SECRETS);
    let refused = |why: String| {
        ApiError::unavailable("secrets", format!("the server's secrets cannot be used: {why}"))
    };
    let text = match private::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(refused(error.to_string())),
    };
    // The error message of serde could quote a value.
    let secrets: BTreeMap<String, String> = serde_json::from_str(&text).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        refused(format!("{SECRETS} must be an object of names and texts ({place})"))
    })?;
    for (name, value) in &secrets {
        if !is_name(name) {
            return Err(refused(format!("{} in {SECRETS} is not a valid name", shown(name))));
        }
        if value.contains('\0') {
            return Err(refused(format!("the value of {name} in {SECRETS} contains a zero byte")));
        }
        redactor.add(name, value);
    }
    Ok(secrets)
}

/// The secrets that a space lists.
///
/// # Errors
/// When one of them does not exist.
pub(super) fn chosen(
    secrets: &BTreeMap<String, String>,
    names: &[String],
) -> Fallible<BTreeMap<String, String>> {
    let find = |name: &String| match secrets.get(name) {
        Some(value) => Ok((name.clone(), value.clone())),
        None => {
            let message = format!("the server has no secret {}", shown(name));
            Err(ApiError::invalid("secrets", message).hint(format!(
                "the operator has to add it to {SECRETS}, or an admin has to remove it from the list"
            )))
        }
    };
    names.iter().map(find).collect()
}

fn is_name(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_reserved = RESERVED_NAMES.contains(&name)
        || RESERVED.iter().any(|beginning| name.starts_with(beginning));
    name.len() <= 128
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(is_fine)
        && !is_reserved
}

#[cfg(test)]
mod tests {
    use super::*;

    // Seen to fail with a reader that does not check the file's mode, and with an error that quotes the file.
    #[test]
    fn secrets_are_read_from_a_private_file_and_never_shown() {
        let data = tempfile::tempdir().unwrap();
        let redactor = Redactor::default();
        assert!(load(data.path(), &redactor).unwrap().is_empty());
        let file = data.path().join(SECRETS);
        private::create(&file, br#"{"SHOP_TOKEN": "canary-value"}"#).unwrap();
        let secrets = load(data.path(), &redactor).unwrap();
        assert_eq!(redactor.text("it is canary-value"), "it is [redacted SHOP_TOKEN]");
        assert_eq!(
            chosen(&secrets, &["SHOP_TOKEN".to_owned()]).unwrap()["SHOP_TOKEN"],
            "canary-value"
        );
        assert!(chosen(&secrets, &[]).unwrap().is_empty());
        assert_eq!(chosen(&secrets, &["OTHER".to_owned()]).unwrap_err().status(), 422);
        let odd = [
            r#"{"A": 1}"#,
            r#""canary-value""#,
            r#"{"PATH": "canary-value"}"#,
            r#"{"LD_PRELOAD": "canary-value"}"#,
            r#"{"ANTHROPIC_API_KEY": "canary-value"}"#,
            r#"{"a b": "canary-value"}"#,
        ];
        for odd in odd {
            private::replace(&file, odd.as_bytes()).unwrap();
            let error = load(data.path(), &redactor).unwrap_err();
            assert!(!error.to_string().contains("canary"), "{error}");
        }
        private::replace(&file, br#"{"A": "canary-value"}"#).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o640);
        std::fs::set_permissions(&file, open).unwrap();
        assert!(load(data.path(), &redactor).unwrap_err().to_string().contains("chmod 600"));
    }
}
