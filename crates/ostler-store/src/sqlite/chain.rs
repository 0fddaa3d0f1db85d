//! The hash chain: every event carries a hash of itself and of the event before it.
//!
//! SQLite does not checksum its pages, so it misses a flipped bit inside a text. The chain detects that, and an event
//! that is missing, moved, or in the wrong stream.

use sha2::{Digest, Sha256};

use crate::{StreamId, Timestamp};

pub(super) type Hash = [u8; 32];

/// The hash that the first event of a stream follows.
pub(super) fn seed(stream: &StreamId) -> Hash {
    Sha256::new().chain_update("ostler stream\n").chain_update(stream.as_str()).finalize().into()
}

/// An event as stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link<'a> {
    pub(super) seq: u64,
    pub(super) at: Timestamp,
    pub(super) epoch: u64,
    pub(super) kind: &'a str,
    pub(super) body: &'a str,
    pub(super) key: Option<&'a str>,
}

impl Link<'_> {
    pub(super) fn hash(&self, previous: &Hash) -> Hash {
        let mut hash = Sha256::new();
        hash.update(previous);
        hash.update(self.seq.to_be_bytes());
        hash.update(self.at.as_millis().to_be_bytes());
        hash.update(self.epoch.to_be_bytes());
        // Each field is preceded by its length, so that no byte can move from one field to the next.
        for text in [Some(self.kind), Some(self.body), self.key].into_iter().flatten() {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
        hash.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::{Link, seed};
    use crate::{StreamId, Timestamp};

    #[test]
    fn every_part_of_an_event_is_in_its_hash() {
        let first = seed(&StreamId::new("a").unwrap());
        let link = Link {
            seq: 1,
            at: Timestamp::from_millis(2),
            epoch: 3,
            kind: "kind",
            body: "{}",
            key: Some("key"),
        };
        let others = [
            link.hash(&seed(&StreamId::new("b").unwrap())),
            Link { seq: 2, ..link }.hash(&first),
            Link { at: Timestamp::from_millis(3), ..link }.hash(&first),
            Link { epoch: 4, ..link }.hash(&first),
            Link { kind: "kinds", ..link }.hash(&first),
            Link { kind: "kin", body: "d{}", ..link }.hash(&first),
            Link { body: "[]", ..link }.hash(&first),
            Link { key: None, ..link }.hash(&first),
            Link { key: Some("kez"), ..link }.hash(&first),
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(&link.hash(&first), other, "change {index} does not show");
        }
        assert_eq!(link.hash(&first), { link }.hash(&first));
    }
}
