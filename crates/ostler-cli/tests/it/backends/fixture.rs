//! Stories of the vendor's programs, saved in `fixtures/stories/`, so that most test runs need not start them.
//!
//! A story depends on the version of the program, on the scenario, and on our code at the other end of the pipe. The
//! fixture has a hash of each. A story counts only while all three are the same; otherwise its scenario is played
//! again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::scenarios::Group;

const HEAD: &str = "# What this program of the vendor's did in each scenario. Written by `cargo xtask test`: see README.md.";

/// The crates on our side of the pipe. A change to them can change what the program does.
const CLIENT: [&str; 5] =
    ["ostler-mcp", "ostler-proto", "ostler-proto-derive", "ostler-sdk", "ostler-testkit"];

/// What a story depends on, by name: the version of the program, and hashes of our code.
pub(super) type Inputs = BTreeMap<String, String>;

/// The saved stories of one program.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fixture {
    pub(super) inputs: Inputs,
    /// By the name of the scenario.
    pub(super) stories: BTreeMap<String, String>,
}

impl Fixture {
    /// Empty if there is no such file yet: then every scenario is played.
    pub(super) fn read(path: &Path) -> Self {
        Self::parse(&std::fs::read_to_string(path).unwrap_or_default())
    }

    /// Parses what [`Self::render`] writes. Other text is ignored, and missing stories are played again.
    fn parse(text: &str) -> Self {
        let mut sections = text.split("\n== ");
        let head = sections.next().unwrap_or_default().lines();
        let inputs = head.filter(|line| !line.starts_with('#')).filter_map(|line| {
            line.split_once(' ').map(|(name, value)| (name.to_owned(), value.to_owned()))
        });
        let stories = sections.map(|section| {
            let (name, story) = section.split_once('\n').unwrap_or((section, ""));
            (name.to_owned(), story.trim().to_owned())
        });
        Self { inputs: inputs.collect(), stories: stories.collect() }
    }

    fn render(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for (name, value) in &self.inputs {
            writeln!(text, "{name} {value}").unwrap();
        }
        for (name, story) in &self.stories {
            write!(text, "\n== {name}\n{story}\n").unwrap();
        }
        text
    }

    /// The story of a scenario, if none of its inputs has changed.
    pub(super) fn current(&self, now: &Inputs, group: &str, scenario: &str) -> Option<&str> {
        let depends_on = ["program", "client", group];
        let same = |name: &str| now.contains_key(name) && self.inputs.get(name) == now.get(name);
        let story = self.stories.get(scenario).map(String::as_str);
        story.filter(|_| depends_on.into_iter().all(same))
    }

    pub(super) fn write(&self, path: &Path) -> std::io::Result<()> {
        let text = self.render();
        assert_eq!(Self::parse(&text), *self, "a story contains a line that looks like a heading");
        for place in [std::env::temp_dir().display().to_string(), "/home/".to_owned()] {
            assert!(!text.contains(&place), "a story names {place}, a folder of this machine");
        }
        std::fs::create_dir_all(path.parent().expect("a folder in the repository"))?;
        std::fs::write(path, text)
    }
}

/// The file with the stories of a program.
pub(super) fn path(name: &str) -> PathBuf {
    crates().join("../fixtures/stories").join(name)
}

/// The current inputs of the stories.
pub(super) fn inputs(program: String, groups: &[Group]) -> Inputs {
    let client: Vec<String> =
        CLIENT.iter().flat_map(|name| sources(&crates().join(name).join("src"))).collect();
    let shared = [
        include_str!("stage.rs"),
        include_str!("story.rs"),
        include_str!("scenarios/mod.rs"),
        crate::mcp::SERVER,
    ];
    let group = |group: &Group| {
        let texts = shared.into_iter().chain([group.source]);
        (group.name.to_owned(), hash(texts))
    };
    let client = hash(client.iter().map(String::as_str));
    let all = [("program".to_owned(), program), ("client".to_owned(), client)];
    all.into_iter().chain(groups.iter().map(group)).collect()
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The texts of all Rust files below a folder, in the order of their paths.
fn sources(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let texts = paths.iter().map(|path| match path.extension() {
        _ if path.is_dir() => sources(path),
        Some(extension) if extension == "rs" => vec![std::fs::read_to_string(path).unwrap()],
        _ => Vec::new(),
    });
    texts.flatten().collect()
}

/// A hash of the code without comments and empty lines.
fn hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut digest = Sha256::new();
    for text in texts {
        for line in text.lines().filter(|line| !is_comment(line)) {
            digest.update(line);
            digest.update("\n");
        }
        digest.update("\0");
    }
    digest.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with("//")
}

fn example() -> Fixture {
    let inputs = [("program", "2.1.50"), ("client", "c1"), ("talk", "t1"), ("hooks", "h1")];
    let stories = [("nothing-to-say", ""), ("text", "init\n\ntext == no head\nresult success")];
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    Fixture { inputs: inputs.map(owned).into(), stories: stories.map(owned).into() }
}

#[test]
fn a_fixture_is_read_as_it_was_written() {
    let fixture = example();
    assert_eq!(Fixture::parse(&fixture.render()), fixture);
    assert_eq!(Fixture::parse(""), Fixture::default());
}

// Mutant: `current` without one of the names in `depends_on`.
#[test]
fn a_saved_story_counts_only_for_the_same_program_client_and_scenarios() {
    let fixture = example();
    let story = |now: &Inputs| fixture.current(now, "talk", "text").is_some();
    assert!(story(&fixture.inputs));
    for (name, counts) in [("program", false), ("client", false), ("talk", false), ("hooks", true)]
    {
        let mut now = fixture.inputs.clone();
        now.insert(name.to_owned(), "changed".to_owned());
        assert_eq!(story(&now), counts, "{name}");
        now.remove(name);
        assert_eq!(story(&now), counts, "without {name}");
    }
    assert_eq!(fixture.current(&fixture.inputs, "talk", "new"), None);
}

#[test]
fn a_comment_does_not_make_stories_stale_and_code_does() {
    let base = hash(["fn a() {}\n"]);
    assert_eq!(hash(["// Why.\n\nfn a() {}\n    /// What.\n"]), base);
    assert_ne!(hash(["fn b() {}\n"]), base);
    assert_ne!(hash(["fn a() {}\n", ""]), base);
    let inputs = inputs("1".to_owned(), &super::scenarios::groups());
    assert_eq!(inputs.len(), 2 + super::scenarios::groups().len());
    assert!(inputs.values().collect::<std::collections::BTreeSet<_>>().len() == inputs.len());
}

#[test]
#[should_panic(expected = "a folder of this machine")]
fn a_story_that_names_a_folder_of_this_machine_is_not_saved() {
    let mut fixture = example();
    let named = std::env::temp_dir().join("x").display().to_string();
    fixture.stories.insert("text".to_owned(), named);
    fixture.write(&std::env::temp_dir().join("never-written")).unwrap();
}
