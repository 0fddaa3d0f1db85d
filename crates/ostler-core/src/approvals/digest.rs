//! The digest of a request: an answer counts only for the exact tool and arguments.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The digest of a tool and its exact arguments; the order of fields does not matter.
pub(super) fn of(tool: &str, input: &Value) -> String {
    let mut hash = Sha256::new();
    write(&mut hash, &Value::String(tool.to_owned()));
    write(&mut hash, input);
    format!("{:x}", hash.finalize())
}

/// Hashes a value so that no two different values give the same bytes: every part is preceded by its kind and length.
fn write(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Array(items) => {
            length(hash, b'[', items.len());
            items.iter().for_each(|item| write(hash, item));
        }
        Value::Object(fields) => {
            length(hash, b'{', fields.len());
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            for (name, field) in fields {
                text(hash, b'k', name);
                write(hash, field);
            }
        }
        Value::String(string) => text(hash, b's', string),
        plain => text(hash, b'p', &plain.to_string()),
    }
}

fn text(hash: &mut Sha256, kind: u8, text: &str) {
    length(hash, kind, text.len());
    hash.update(text);
}

fn length(hash: &mut Sha256, kind: u8, length: usize) {
    hash.update([kind]);
    hash.update((length as u64).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::of;

    #[test]
    fn equal_calls_have_equal_digests_and_different_calls_do_not() {
        let asked = of("Bash", &json!({"command": "ls", "timeout": 5}));
        assert_eq!(asked, of("Bash", &json!({"timeout": 5, "command": "ls"})));
        for other in [
            of("Bash", &json!({"command": "ls ", "timeout": 5})),
            of("Bash", &json!({"command": "ls", "timeout": "5"})),
            of("Bash", &json!({"command": "ls"})),
            of("Bas", &json!({"command": "ls", "timeout": 5})),
            of("Bash", &json!({"command": ["ls"], "timeout": 5})),
            of("Bash", &json!({"command": {"ls": 5}})),
        ] {
            assert_ne!(asked, other);
        }
    }
}
