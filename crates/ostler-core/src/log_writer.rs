//! The redacted log. Secrets are removed where the log is written, so code that logs need not consider it.

use parking_lot::RwLock;
use std::io::{self, Write};
use std::sync::{Arc, Weak};

use ostler_secret::Secrets;

use crate::confine::redact::Redactor;

/// The secrets that the servers of this process know.
static KNOWN: RwLock<Vec<Weak<RwLock<Secrets>>>> = RwLock::new(Vec::new());

/// Redacts the secrets of this redactor from the log, for as long as it lives.
pub fn register(redactor: &Redactor) {
    let mut known = KNOWN.write();
    known.retain(|secrets| secrets.strong_count() > 0);
    known.push(Arc::downgrade(&redactor.0));
}

/// Standard error with redaction; one writer for each line of the log. A log with another writer is not redacted.
#[must_use]
pub fn stderr() -> RedactedWriter<io::Stderr> {
    RedactedWriter(io::stderr())
}

/// Redacts what is written through it. Each write is redacted by itself, so it must be a whole line.
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
    let known = KNOWN.read();
    let servers = known.iter().filter_map(Weak::upgrade).map(Redactor);
    // Unknown secrets are found by their pattern.
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
        // Also secrets that are added later.
        redactor.add("LATER", "another-canary-9");
        let mut written = RedactedWriter(Vec::new());
        writeln!(written, "{{\"message\":\"it is canary+5ecret/value and another-canary-9\"}}")
            .unwrap();
        let text = String::from_utf8(written.0).unwrap();
        assert!(text.contains("[redacted SHOP_TOKEN] and [redacted LATER]"), "{text}");
        assert!(!text.contains("canary"), "{text}");
    }
}
