//! `size`: the shipped program has at most 30 MB.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

const LIMIT: u64 = 30_000_000;

/// `ostler` as shipped; `cargo xtask bench` builds it next to this program.
pub(crate) fn program() -> Result<PathBuf> {
    let this = std::env::current_exe().context("finding this program")?;
    let target = this.ancestors().nth(2).context("finding the target folder")?;
    let program = target.join("dist").join("ostler");
    ensure!(
        program.is_file(),
        "{} is missing: run `cargo xtask bench`, or build it with `cargo build --profile dist -p ostler-cli`",
        program.display()
    );
    Ok(program)
}

pub(crate) fn run() -> Result<Vec<String>> {
    let bytes = program()?.metadata()?.len();
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    println!("size: {:.1} MB, at most {:.0}", megabytes(bytes), megabytes(LIMIT));
    if bytes > LIMIT {
        return Ok(vec![format!("the program has {bytes} bytes; the promise is {LIMIT}")]);
    }
    Ok(Vec::new())
}
