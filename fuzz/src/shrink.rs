//! Making a failing input short enough to be read.

/// Tries to spend no more than this on one input: it is a courtesy to the reader, not the purpose of a run.
const MOST_ATTEMPTS: usize = 5_000;

/// The input without the pieces that do not matter: ever smaller ones are left out as long as it `still_fails`.
pub fn shrink(input: &[u8], mut still_fails: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut input = input.to_vec();
    let mut n_attempts = 0;
    let mut size = (input.len() / 2).max(1);
    loop {
        let before = input.len();
        let mut at = 0;
        while at < input.len() && n_attempts < MOST_ATTEMPTS {
            let end = (at + size).min(input.len());
            let shorter = [&input[..at], &input[end..]].concat();
            n_attempts += 1;
            if still_fails(&shorter) {
                input = shorter;
            } else {
                at = end;
            }
        }
        if n_attempts >= MOST_ATTEMPTS || (size == 1 && input.len() == before) {
            return input;
        }
        size = (size / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_what_matters_is_left() {
        let input = b"some {words} around a [bracket] or two";
        let still_fails = |bytes: &[u8]| bytes.contains(&b'{') && bytes.contains(&b']');
        assert_eq!(super::shrink(input, still_fails), b"{]");
    }
}
