//! A hash that is the same everywhere; the standard hasher may change between versions.

/// FNV-1a.
pub(crate) fn checksum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(super::checksum("a"), 0xaf63_dc4c_8601_ec8c);
    }
}
