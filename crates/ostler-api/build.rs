//! Puts the web page into the program, compressed, if it was built: `cargo xtask web` does that.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let dist = root.join("../../web/dist/page");
    // The folder above: cargo takes what is not there for changed, each time.
    println!("cargo::rerun-if-changed={}", root.join("../../web/dist").display());
    let mut files = Vec::new();
    if dist.join("index.html").is_file() {
        collect(&dist, &mut files)?;
    }
    files.sort();
    let mut index = String::from("&[\n");
    for (number, file) in files.iter().enumerate() {
        let packed = out.join(format!("page-{number}.gz"));
        pack(file, &packed)?;
        let relative = file.strip_prefix(&dist).expect("it was found there");
        let path = format!("/{}", relative.display()).replace('\\', "/");
        writeln!(index, "    ({path:?}, include_bytes!({:?}).as_slice()),", packed.display())
            .expect("a text takes everything");
    }
    index.push_str("]\n");
    fs::write(out.join("page.rs"), index)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn pack(file: &Path, to: &Path) -> io::Result<()> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(&fs::read(file)?)?;
    fs::write(to, packer.finish()?)
}
