//! Finds the files that a configuration file of git includes.

use std::path::{Path, PathBuf};

/// The files that the text of `file` includes, with or without a condition. Relative paths are relative to the file.
pub(crate) fn included(text: &str, file: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut is_include = false;
    let mut found = Vec::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            is_include = header.to_ascii_lowercase().starts_with("include");
            // A key may follow in the same line.
            line = header.split_once(']').map_or("", |(_, rest)| rest.trim());
        }
        if is_include {
            found.extend(path(line).and_then(|path| absolute(&path, file, home)));
        }
    }
    found
}

/// The value of a line `path = …`.
fn path(line: &str) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    let value = value.trim();
    let value = match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => value.split(['#', ';']).next().map(str::trim_end),
    };
    key.trim().eq_ignore_ascii_case("path").then(|| value.map(str::to_owned)).flatten()
}

fn absolute(path: &str, file: &Path, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => Some(home?.join(rest)),
        None => Some(file.parent()?.join(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn included_files_are_found() {
        let text = "[user]\n\tpath = no\n[include]\n\tpath = ~/a\n\tPATH=\"b c\"\n\tpath = /d # why\n\
            [includeIf \"gitdir:/x/\"] path = e\n[core]\n\tpath = no\n[INCLUDE]\npath = f;\n";
        let found = included(text, Path::new("/h/u/.gitconfig"), Some(Path::new("/h/u")));
        let expected = ["/h/u/a", "/h/u/b c", "/d", "/h/u/e", "/h/u/f"];
        assert_eq!(found, expected.map(PathBuf::from));
        assert_eq!(
            included("[include]\npath = ~/a", Path::new("/x"), None),
            [""; 0].map(PathBuf::from)
        );
    }
}
