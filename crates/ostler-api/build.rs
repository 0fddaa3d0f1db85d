//! Embeds the compressed web page into the program, if `cargo xtask web` has built it.

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
    // The parent folder: cargo treats a missing path as changed, each time.
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
        let relative = file.strip_prefix(&dist).expect("the file is in this folder");
        let path = format!("/{}", relative.display()).replace('\\', "/");
        writeln!(index, "    ({path:?}, include_bytes!({:?}).as_slice()),", packed.display())
            .expect("writing to a string cannot fail");
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
