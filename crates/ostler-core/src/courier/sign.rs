//! Signatures: HMAC with SHA-256 (RFC 2104) over a time and a body, so that neither can be exchanged.

use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

/// The signature of a body that was sent at a time, in seconds since 1970.
pub(crate) fn signature(secret: &str, seconds: u64, body: &[u8]) -> String {
    format!("v1={}", hmac(secret.as_bytes(), &[format!("{seconds}.").as_bytes(), body]))
}

/// Whether a signature is correct, compared in constant time.
pub(crate) fn is_right(secret: &str, seconds: u64, body: &[u8], said: &str) -> bool {
    let right = signature(secret, seconds, body);
    right.as_bytes().ct_eq(said.as_bytes()).into()
}

/// In hexadecimal digits.
fn hmac(key: &[u8], message: &[&[u8]]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    message.iter().for_each(|part| mac.update(part));
    format!("{:x}", mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &[u8], message: &[u8], expected: &str) {
        assert_eq!(hmac(key, &[message]), expected);
    }

    // The cases of RFC 4231 with a short key, a plain one and one that is longer than a block.
    #[test]
    fn hmac_matches_the_test_vectors_of_rfc_4231() {
        check(
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        );
        check(
            &[0x0b; 20],
            b"Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        );
        check(
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        );
    }

    #[test]
    fn only_the_exact_signature_is_accepted() {
        let right = signature("secret", 7, b"{}");
        assert!(is_right("secret", 7, b"{}", &right));
        assert!(!is_right("secret", 8, b"{}", &right), "another time");
        assert!(!is_right("secret", 7, b"{ }", &right), "another body");
        assert!(!is_right("Secret", 7, b"{}", &right), "another secret");
        for wrong in ["", "v1=", &right[..right.len() - 1], &format!("{right}0")] {
            assert!(!is_right("secret", 7, b"{}", wrong), "{wrong}");
        }
    }
}
