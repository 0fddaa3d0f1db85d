//! The names of the folders of session files: one for every working directory. Session stores use the same name
//! as the key of a project.

/// The longest name without a hash. A longer one is cut here, and a hash of the whole path follows.
pub const MAX_NAME: usize = 200;

/// The folder name of a working directory: everything but ASCII letters and digits becomes `-`.
///
/// The vendor's programs count in UTF-16 code units, here and in the hash of names that are too long.
pub fn folder_name(path: &str) -> String {
    let units = path.encode_utf16();
    let mut name: String = units
        .map(|unit| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric).unwrap_or(b'-'))
        .map(char::from)
        .collect();
    if name.len() > MAX_NAME {
        name.truncate(MAX_NAME);
        name.push('-');
        name.push_str(&base36(hash(path)));
    }
    name
}

fn hash(text: &str) -> u32 {
    let hash = text
        .encode_utf16()
        .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    hash.unsigned_abs()
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            break digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_after_its_path() {
        assert_eq!(folder_name("/srv/My_app.v2"), "-srv-My-app-v2");
        assert_eq!(folder_name("/é😀"), "----", "counted in UTF-16");
    }

    #[test]
    fn a_long_name_ends_in_a_hash_of_the_whole_path() {
        let path = format!("/{}", "a".repeat(250));
        let name = folder_name(&path);
        // Computed with the MIT-licensed Python SDK's rule.
        assert_eq!(name, format!("-{}-feo44x", "a".repeat(199)));
        assert_eq!(folder_name(&path[..200]).len(), 200, "200 is not too long");
        assert_eq!((base36(0), base36(35), base36(36)), ("0".into(), "z".into(), "10".into()));
    }
}
