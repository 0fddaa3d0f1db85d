//! Gives the crate a number that changes with its source, so that a helper of another build is not used.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=src");
    let mut files = Vec::new();
    list(Path::new("src"), &mut files);
    files.sort();
    // FNV-1a: no dependency, and the same with every compiler.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for file in files {
        for byte in std::fs::read(&file).expect("a source file can be read") {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=OSTLER_SANDBOX_BUILD={hash:016x}");
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the source folder can be read") {
        let path = entry.expect("the source folder can be read").path();
        match path.is_dir() {
            true => list(&path, files),
            false => files.push(path),
        }
    }
}
