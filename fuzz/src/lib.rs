//! Properties that hold for any bytes. Each target takes bytes and panics if a property fails.
//!
//! Two drivers use them: the program of this package, which needs nothing but the stable toolchain and runs in
//! every test, and `libfuzzer/`, for long runs with a nightly one. Inputs that once broke a promise are kept in
//! `regressions/` and replayed by the unit test below.
//!
//! [`judge`] is another kind of target: it compares what the permission judge says about a command with what the
//! command does.

mod codec;
mod frame;
pub mod judge;
mod peer;
pub mod random;
pub mod shrink;

pub use self::codec::codec;
pub use self::frame::frame;
pub use self::peer::peer;

/// A function that panics if the bytes violate a property.
pub type Target = fn(&[u8]);

/// All targets, by name.
pub const TARGETS: [(&str, Target); 3] = [("codec", codec), ("frame", frame), ("peer", peer)];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::TARGETS;

    #[test]
    fn past_failures_do_not_come_back() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
        let mut broken = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let input = fs::read(&path).unwrap();
            for (name, target) in TARGETS {
                if std::panic::catch_unwind(|| target(&input)).is_err() {
                    broken.push(format!("{} breaks {name}", path.display()));
                }
            }
        }
        assert!(broken.is_empty(), "{broken:#?}");
    }
}
