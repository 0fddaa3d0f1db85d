//! Folds equal functions of the program as shipped (0.2 MB), where rustc links with its own `lld`.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).as_deref() == Ok(value);
    // Only the profile `dist` is built for size.
    if is("TARGET", "x86_64-unknown-linux-gnu") && is("OPT_LEVEL", "z") {
        println!("cargo::rustc-link-arg-bin=ostler=-Wl,--icf=all");
    }
}
