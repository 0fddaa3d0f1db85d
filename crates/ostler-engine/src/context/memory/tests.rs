//! Which instructions are found, and which are left out.

use super::*;

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn load_all(
    cwd: &Path,
    config: Option<&Path>,
    home: Option<&Path>,
    sources: MemorySources,
) -> Vec<MemoryFile> {
    look(cwd, config, home, sources, true).files
}

fn look(
    cwd: &Path,
    config: Option<&Path>,
    home: Option<&Path>,
    sources: MemorySources,
    trusts_project: bool,
) -> Memory {
    load(&lookup(cwd, config, home, sources, trusts_project))
}

fn lookup(
    cwd: &Path,
    config: Option<&Path>,
    home: Option<&Path>,
    sources: MemorySources,
    trusts_project: bool,
) -> Lookup {
    let (config, home) = (config.map(Path::to_owned), home.map(Path::to_owned));
    Lookup { cwd: cwd.to_owned(), config, home, sources, trusts_project, ..Lookup::default() }
}

fn texts(files: &[MemoryFile]) -> Vec<&str> {
    files.iter().map(|file| file.text.as_str()).collect()
}

#[test]
fn the_nearest_file_comes_last() {
    let root = tempfile::tempdir().unwrap();
    let (config, cwd) = (root.path().join("config"), root.path().join("a/b"));
    write(&config, "CLAUDE.md", "user");
    write(root.path(), "a/CLAUDE.md", "outer");
    write(&cwd, "CLAUDE.md", "inner");
    write(&cwd, ".claude/CLAUDE.md", "inner too");
    write(&cwd, "CLAUDE.local.md", "mine");
    let files = load_all(&cwd, Some(&config), None, MemorySources::ALL);
    assert_eq!(texts(&files), ["user", "outer", "inner", "inner too", "mine"]);
    let only = MemorySources { user: false, project: true, local: false };
    assert_eq!(texts(&load_all(&cwd, Some(&config), None, only)), ["outer", "inner", "inner too"]);
}

#[test]
fn imports_come_before_the_file_once_and_never_in_circles() {
    let root = tempfile::tempdir().unwrap();
    write(
        root.path(),
        "CLAUDE.md",
        "see @docs/style.md, and @docs/style.md\n`@code.md`\n```\n@fenced.md\n```\n@missing.md me@home.org",
    );
    write(root.path(), "docs/style.md", "tabs @../CLAUDE.md @~/own.md");
    write(root.path(), "home/own.md", "own");
    write(root.path(), "code.md", "no");
    write(root.path(), "fenced.md", "no");
    let home = root.path().join("home");
    let files = load_all(root.path(), None, Some(&home), MemorySources::ALL);
    assert_eq!(texts(&files)[..2], ["own", "tabs @../CLAUDE.md @~/own.md"]);
    assert_eq!(files.len(), 3);
}

#[test]
fn a_file_that_is_too_long_is_cut_and_says_so() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "CLAUDE.md", &"é".repeat(MAX_BYTES));
    let files = load_all(root.path(), None, None, MemorySources::ALL);
    assert!(files[0].text.len() < MAX_BYTES + 100 && files[0].text.ends_with("too long]"));
}

#[test]
fn a_file_that_is_not_text_is_skipped() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("CLAUDE.md"), [0xff, 0xfe, 0]).unwrap();
    write(root.path(), ".claude/CLAUDE.md", "  \n");
    assert_eq!(load_all(root.path(), None, None, MemorySources::ALL), []);
}

#[test]
fn instructions_in_a_folder_that_every_user_can_write_to_are_ignored() {
    let root = tempfile::tempdir().unwrap();
    let (shared, cwd) = (root.path().join("shared"), root.path().join("shared/mine"));
    write(&shared, "CLAUDE.md", "from another user");
    write(&cwd, "CLAUDE.md", "own");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let memory = look(&cwd, None, None, MemorySources::ALL, false);
    assert_eq!(texts(&memory.files), ["own"]);
    assert!(memory.problems[0].reason.contains("every user can write"), "{memory:?}");
    assert_eq!(
        texts(&load_all(&cwd, None, None, MemorySources::ALL)),
        ["from another user", "own"]
    );
}

#[test]
fn many_imports_are_bounded_and_so_are_the_problems() {
    let root = tempfile::tempdir().unwrap();
    let cwd = root.path().join("project");
    let mut text = String::new();
    for n in 0..MAX_FILES + 50 {
        write(&cwd, &format!("{n}.md"), "short");
        write(root.path(), &format!("{n}.md"), "outside");
        text.push_str(&format!("@{n}.md @../{n}.md\n"));
    }
    write(&cwd, "CLAUDE.md", &text);
    let memory = look(&cwd, None, None, MemorySources::ALL, false);
    assert_eq!(memory.files.len(), MAX_FILES + 1, "the imports, and the file itself");
    assert!(!texts(&memory.files).contains(&"outside"));
    assert_eq!(memory.problems.len(), MAX_PROBLEMS);
    assert!(memory.problems.last().unwrap().reason.ends_with("more files are left out"));
}

// Mutants: rules are not read; the head is sent to the model; `claudeMdExcludes` is ignored; notes are read whole.
#[test]
fn rules_and_notes_are_loaded_and_excluded_files_are_not() {
    let root = tempfile::tempdir().unwrap();
    let (config, cwd) = (root.path().join("home/.claude"), root.path().join("a/b"));
    write(&config, "rules/mine.md", "mine");
    write(&cwd, "CLAUDE.md", "inner");
    write(&cwd, ".claude/rules/style.md", "---\ndescription: Style\n---\nUse tabs. @../../deep.md");
    write(&cwd, ".claude/rules/web/css.md", "---\npaths: [\"**/*.css\"]\n---\nNo floats.");
    write(&cwd, ".claude/rules/notes.txt", "no rule");
    write(&cwd, "deep.md", "imported");
    write(root.path(), "a/CLAUDE.md", "outer");
    let notes = root.path().join("MEMORY.md");
    write(root.path(), "MEMORY.md", &"note\n".repeat(300));
    let lookup = Lookup {
        notes: Some(notes),
        excludes: vec!["**/a/CLAUDE.md".to_owned()],
        ..lookup(&cwd, Some(&config), None, MemorySources::ALL, false)
    };
    let memory = load(&lookup);
    let found = texts(&memory.files);
    assert_eq!(found[..3], ["mine", "inner", "imported"]);
    assert_eq!(found[3].trim(), "Use tabs. @../../deep.md");
    assert_eq!(found[4].lines().count(), MAX_NOTES + 1);
    assert_eq!(found.len(), 5);
    assert_eq!(memory.path_rules.len(), 1);
    assert!(memory.path_rules[0].is_for(&cwd.join("x/y.css")));
}

// Mutants: the folder of rules may be a link to anywhere; imports of a rule may be.
#[test]
fn rules_of_a_project_that_is_not_trusted_read_nothing_outside_it() {
    let root = tempfile::tempdir().unwrap();
    let cwd = root.path().join("project");
    // One file for each way: a file is read once, so the refusal of one way would hide another.
    for name in ["imported.md", "home/key.md", "linked.md", "outside/listed.md"] {
        write(root.path(), name, "SECRET");
    }
    write(&cwd, ".claude/rules/a.md", "see @../../../imported.md @~/key.md @/etc/passwd");
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, cwd.join(".claude/rules").join(name)).unwrap();
    };
    link("../../../linked.md", "b.md");
    link("../../../outside", "more");
    let home = root.path().join("home");
    let memory = look(&cwd, None, Some(&home), MemorySources::ALL, false);
    assert_eq!(memory.files.len(), 1, "{memory:?}");
    assert_eq!(memory.problems.len(), 5, "{memory:?}");
    let trusted = look(&cwd, None, Some(&home), MemorySources::ALL, true);
    assert_eq!(texts(&trusted.files).iter().filter(|text| **text == "SECRET").count(), 4);
}

// Mutants: AGENTS.md is never read; it is read in addition.
#[test]
fn a_file_for_all_agents_stands_in_for_a_missing_one() {
    let root = tempfile::tempdir().unwrap();
    let cwd = root.path().join("a");
    write(root.path(), "AGENTS.md", "outer");
    write(&cwd, "AGENTS.md", "not read");
    write(&cwd, "CLAUDE.md", "inner");
    let files = load_all(&cwd, None, None, MemorySources::ALL);
    assert_eq!(texts(&files), ["outer", "inner"]);
}
