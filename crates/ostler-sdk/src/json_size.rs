//! The size of a value as JSON, without storing the JSON.

use std::io;

use serde::Serialize;

/// How many bytes the value takes as JSON.
pub(crate) fn json_size(value: &impl Serialize) -> usize {
    let mut counter = Counter(0);
    // Counting cannot fail, and values that were read from JSON can be written as JSON.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
