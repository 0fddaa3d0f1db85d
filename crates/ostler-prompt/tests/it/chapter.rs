//! The tests that `docs/prompts.md` names exist.

use std::fs;
use std::path::Path;

#[test]
fn every_test_named_in_the_chapter_exists() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let chapter = fs::read_to_string(here.join("../../docs/prompts.md")).unwrap();
    let (_, table) = chapter.split_once("\n## Tests by row of the original\n").unwrap();
    let mut n_names = 0;
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        // A name without a file is in the file of the name before it.
        let mut file = String::new();
        let cell = line.rsplit('|').nth(1).unwrap();
        for name in cell.split('`').skip(1).step_by(2) {
            let (folder, name) = match name.split_once("::tests::") {
                Some((of, name)) => {
                    of.clone_into(&mut file);
                    ("src", name)
                }
                None => match name.split_once("::") {
                    Some((of, name)) => {
                        of.clone_into(&mut file);
                        ("tests/it", name)
                    }
                    None if name == "src" => continue,
                    None if name == "exits" => {
                        "exits".clone_into(&mut file);
                        ("tests/it", "a_workspace_is_removed_")
                    }
                    None => ("tests/it", name),
                },
            };
            let text = fs::read_to_string(here.join(folder).join(format!("{file}.rs"))).unwrap();
            let wanted = format!("fn {}", name.trim_end_matches('…'));
            assert!(text.contains(&wanted), "{file}: {name}");
            n_names += 1;
        }
    }
    assert!(n_names > 60, "{n_names}");
}
