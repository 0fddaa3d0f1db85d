//! Makes the program as shipped smaller, where rustc links with its own `lld`: folds equal functions (0.2 MB) and packs
//! relocations (1.3 MB), which also makes it start faster.

use std::env;
use std::process::Command;

/// The first glibc that reads packed relocations. A program with them needs it, so machines with an older one build
/// without.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).as_deref() == Ok(value);
    // Only the profile `dist` is built for size.
    if is("TARGET", "x86_64-unknown-linux-gnu") && is("OPT_LEVEL", "z") {
        println!("cargo::rustc-link-arg-bin=ostler=-Wl,--icf=all");
        if glibc().is_some_and(|version| version >= PACKED_SINCE) {
            println!("cargo::rustc-link-arg-bin=ostler=-Wl,-z,pack-relative-relocs");
        }
    }
}

/// The version of this machine's glibc, from a line like `glibc 2.36`.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
