//! The log without secrets. They are taken out where the log is written, so that whoever logs need not think of it.

use std::io::{self, Write};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use ostler_secret::Secrets;

use crate::confine::redact::Redactor;

/// What the servers of this process know of secrets.
static KNOWN: RwLock<Vec<Weak<RwLock<Secrets>>>> = RwLock::new(Vec::new());

/// From now on the log is written without what this redactor knows, for as long as it lives.
pub fn register(redactor: &Redactor) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    known.retain(|secrets| secrets.strong_count() > 0);
    known.push(Arc::downgrade(&redactor.0));
}

/// Standard error without secrets; one for each line of the log. A log that is written elsewhere leaks what this does not.
#[must_use]
pub fn stderr() -> RedactedWriter<io::Stderr> {
    RedactedWriter(io::stderr())
}

/// Takes out secrets of what is written through it. Every write is looked at by itself, so that it must be a whole line.
#[derive(Debug)]
pub struct RedactedWriter<W>(pub W);

impl<W: Write> Write for RedactedWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.write_all(redacted(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn redacted(text: &str) -> String {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    let servers = known.iter().filter_map(Weak::upgrade).map(Redactor);
    // What looks like a secret is found without knowing any.
    let all = servers.chain([Redactor::default()]);
    all.fold(text.to_owned(), |text, redactor| redactor.text(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutant: `write` that writes the line as it is; `register` that keeps nothing.
    #[test]
    fn no_secret_of_a_server_is_written_to_the_log() {
        let redactor = Redactor::default();
        redactor.add("SHOP_TOKEN", "canary+5ecret/value");
        register(&redactor);
        // Also what it learns later.
        redactor.add("LATER", "another-canary-9");
        let mut written = RedactedWriter(Vec::new());
        writeln!(written, "{{\"message\":\"it is canary+5ecret/value and another-canary-9\"}}")
            .unwrap();
        let text = String::from_utf8(written.0).unwrap();
        assert!(text.contains("[redacted SHOP_TOKEN] and [redacted LATER]"), "{text}");
        assert!(!text.contains("canary"), "{text}");
    }
}
