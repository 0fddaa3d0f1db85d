//! Profiles as text: read again by a small reader of lists, and judged as the kernel does, by the last rule that matches.

use std::path::{Path, PathBuf};

use super::SeatbeltBackend;
use super::profile;
use super::quote::spellings;
use crate::backend::{Backend as _, InsideCommand};
use crate::boundary::{Boundary, Kind, Mapped, Network, Protected, UnixSockets};
use crate::reached::FirstReached;
use crate::setup::Setup;

/// A list or a word of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    List(Vec<Self>),
    Word(String),
    Text(String),
}

/// Reads a profile. Panics if quotation marks or parentheses do not match.
fn read(text: &str) -> Vec<Item> {
    let mut lists = vec![Vec::new()];
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '(' => lists.push(Vec::new()),
            ')' => {
                let list = lists.pop().unwrap();
                lists.last_mut().expect("a parenthesis too many").push(Item::List(list));
            }
            '"' => {
                let mut text = String::new();
                loop {
                    match rest.next().expect("the quotation mark is closed") {
                        '"' => break,
                        '\\' => text.push(rest.next().unwrap()),
                        other => text.push(other),
                    }
                }
                lists.last_mut().unwrap().push(Item::Text(text));
            }
            // A regular expression, in which nothing is escaped.
            '#' => {
                assert_eq!(rest.next(), Some('"'));
                let text: String = rest.by_ref().take_while(|it| *it != '"').collect();
                lists.last_mut().unwrap().push(Item::Text(text));
            }
            space if space.is_whitespace() => {}
            first => {
                let mut word = first.to_string();
                while let Some(next) =
                    rest.next_if(|it| !it.is_whitespace() && !"()\"".contains(*it))
                {
                    word.push(next);
                }
                lists.last_mut().unwrap().push(Item::Word(word));
            }
        }
    }
    assert_eq!(lists.len(), 1, "a parenthesis is not closed: {text}");
    lists.remove(0)
}

/// Whether a profile allows an operation on a path: the last rule that matches counts.
fn allows(profile: &str, operation: &str, path: &str) -> bool {
    let mut answer = false;
    for rule in read(profile) {
        let Item::List(rule) = rule else { panic!("{rule:?} is outside a list") };
        let Item::Word(verb) = &rule[0] else { panic!("a rule without a verb: {rule:?}") };
        let is_of = |item: &Item| {
            matches!(item, Item::Word(word) if word == operation
            || word == "default"
            || word.strip_suffix('*').is_some_and(|group| operation.starts_with(group)))
        };
        let filters: Vec<&Item> =
            rule.iter().filter(|item| matches!(item, Item::List(_))).collect();
        if rule[1..].iter().any(is_of)
            && (filters.is_empty() || filters.iter().any(|it| matches(it, path)))
        {
            answer = verb == "allow";
        }
    }
    answer
}

fn matches(filter: &Item, path: &str) -> bool {
    let Item::List(filter) = filter else { return false };
    let (Item::Word(kind), Some(Item::Text(text))) = (&filter[0], filter.get(1)) else {
        return false;
    };
    match kind.as_str() {
        "literal" => text == path,
        "subpath" => Path::new(path).starts_with(text),
        "regex" => matches_pattern(text, path),
        _ => false,
    }
}

/// For patterns as the profile has them.
fn matches_pattern(pattern: &str, path: &str) -> bool {
    let output = std::process::Command::new("grep")
        .args(["-E", "-q", "-e", pattern])
        .env("LC_ALL", "C.UTF-8")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .and_then(|mut child| {
            use std::io::Write as _;
            child.stdin.take().unwrap().write_all(path.as_bytes())?;
            child.wait()
        });
    output.unwrap().success()
}

fn boundary() -> Boundary {
    let protected = [".git/hooks", ".claude"]
        .map(|name| Protected { path: Path::new("/Users/me/work").join(name), kind: Kind::File });
    Boundary {
        writable: vec!["/Users/me/work".into(), "/Users/me/other".into()],
        hidden: vec!["/Users".into(), "/Users/me/work/secret".into()],
        readable: vec!["/Users/me/.cargo/bin".into()],
        protected: protected.into(),
        ..Boundary::default()
    }
}

fn text(boundary: &Boundary) -> String {
    profile::of(boundary, None).unwrap()
}

// Mutants: hidden before what is readable in it; the temporary folders are not hidden; without `(deny default)`.
#[test]
fn everything_but_hidden_paths_can_be_read_and_only_writable_ones_written() {
    let profile = text(&boundary());
    let expected = [
        ("/usr/bin/git", true, false),
        ("/Users/you/notes", false, false),
        ("/Users/me/.ssh/id", false, false),
        ("/Users/me/.cargo/bin/cargo", true, false),
        ("/Users/me/work", true, true),
        ("/Users/me/work/src/main.rs", true, true),
        ("/Users/me/workshop", false, false),
        ("/Users/me/work/secret/key", false, false),
        ("/private/tmp/other", false, false),
        ("/private/var/folders/x", false, false),
        ("/etc/passwd", true, false),
        ("/dev/null", true, true),
    ];
    for (path, can_read, can_write) in expected {
        assert_eq!(allows(&profile, "file-read-data", path), can_read, "reading {path}");
        assert_eq!(allows(&profile, "file-write-data", path), can_write, "writing {path}");
    }
    // The way to the folder, and nothing else in it.
    assert!(allows(&profile, "file-read-metadata", "/Users/me"));
    assert!(!allows(&profile, "file-read-metadata", "/Users/me/.ssh"));
    for operation in
        ["network-outbound", "mach-register", "process-info-pidinfo-of-others", "iokit-open"]
    {
        assert!(!allows(&profile, operation, "/x"), "{operation}");
    }
}

// Mutants: protected paths before writable ones; roots can be renamed; only the exact spelling is protected.
#[test]
fn protected_paths_cannot_be_written_created_or_replaced() {
    let profile = text(&boundary());
    let denied = [
        ("file-write-data", "/Users/me/work/.git/hooks/pre-commit"),
        ("file-write-create", "/Users/me/work/.claude/settings.json"),
        ("file-write-unlink", "/Users/me/work/.claude"),
        // Missing folders on the way, and another folder in their place.
        ("file-write-create", "/Users/me/work/.git"),
        ("file-write-unlink", "/Users/me/work/.git"),
        ("file-write-unlink", "/Users/me/work"),
        ("file-write-unlink", "/Users/me/other"),
        // The same names for the file system.
        ("file-write-create", "/Users/me/work/.CLAUDE/settings.json"),
        ("file-write-create", "/Users/me/work/.Git"),
        ("file-write-create", "/Users/me/work/.git/hook\u{17f}/pre-commit"),
    ];
    for (operation, path) in denied {
        assert!(!allows(&profile, operation, path), "{operation} {path}");
    }
    for (operation, path) in [
        ("file-write-data", "/Users/me/work/.git/index"),
        ("file-write-create", "/Users/me/work/.gitignore"),
        ("file-write-unlink", "/Users/me/work/src"),
    ] {
        assert!(allows(&profile, operation, path), "{operation} {path}");
    }
    let mut whole = boundary();
    whole.protected.push(Protected { path: "/Users/me/other".into(), kind: Kind::Folder });
    assert!(!allows(&text(&whole), "file-write-data", "/Users/me/other/x"));
}

// Mutants: without escaping; control characters are accepted.
#[test]
fn no_path_adds_a_rule() {
    let count = |profile: &str| read(profile).len();
    let plain = |path: &str| {
        let inner = |name: &str| Path::new(path).join(name);
        Boundary {
            writable: vec![path.into()],
            hidden: vec![inner("h")],
            protected: vec![Protected { path: inner("p"), kind: Kind::File }],
            unix_sockets: UnixSockets::These(vec![inner("s")]),
            ..Boundary::default()
        }
    };
    // A path of as many parts that has nothing special.
    let usual = |evil: &str| {
        let parts = Path::new(evil).components().skip(1).map(|_| "w");
        let path: PathBuf = std::iter::once("/").chain(parts).collect();
        count(&text(&plain(path.to_str().unwrap())))
    };
    for evil in [
        "/w\") (allow default) (literal \"",
        "/w\\\") (allow default) (literal \"",
        "/w)) (allow file-write* (subpath \"/\"))",
        "/w;(allow default)",
        "/w\\",
        "/w#\"x",
        "/w (regex #\"",
        "/w'`$(id)",
    ] {
        let profile = text(&plain(evil));
        assert_eq!(count(&profile), usual(evil), "{profile}");
        assert!(!allows(&profile, "file-write-data", "/etc/passwd"), "{profile}");
        assert!(!allows(&profile, "mach-register", "/x"), "{profile}");
        assert!(allows(&profile, "file-write-data", &format!("{evil}/file")), "{profile}");
        assert!(!allows(&profile, "file-write-data", &format!("{evil}/p")), "{profile}");
        assert!(!allows(&profile, "file-read-data", &format!("{evil}/h")), "{profile}");
    }
    for refused in ["/w\n(allow default)", "/w\r", "/w\0", "/w\u{7f}", "/w\u{1b}"] {
        assert!(profile::of(&plain(refused), None).is_err(), "{refused:?}");
    }
    let bytes: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"/w\xff");
    let boundary = Boundary { hidden: vec![PathBuf::from(bytes)], ..Boundary::default() };
    assert!(profile::of(&boundary, None).is_err());
}

#[test]
fn a_pattern_has_no_character_that_ends_it() {
    assert_eq!(spellings(Path::new("/a.b\"(é")), "/[aA].[bB]...+");
}

// Mutant: the proxy's port allows all ports.
#[test]
fn the_network_is_the_proxys_port_or_nothing() {
    let mut boundary = boundary();
    assert!(!text(&boundary).contains("network"));
    boundary.network = Network::Proxy("/p".into());
    assert!(!text(&boundary).contains("network"), "without a port there is no way out");
    let rules = |boundary: &Boundary| {
        let profile = profile::of(boundary, Some(4711)).unwrap();
        let rules = profile.lines().filter(|line| line.contains("network"));
        rules.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(rules(&boundary), ["(allow network-outbound (remote ip \"localhost:4711\"))"]);
    boundary.network = Network::None;
    boundary.unix_sockets = UnixSockets::These(vec!["/var/run/x.sock".into()]);
    assert_eq!(
        rules(&boundary),
        ["(allow network-outbound (literal \"/private/var/run/x.sock\"))"]
    );
    boundary.unix_sockets = UnixSockets::None;
    boundary.network = Network::Host;
    assert!(
        rules(&boundary).iter().all(|rule| rule.contains("ip)") || rule.contains("mDNSResponder"))
    );
}

#[test]
fn a_private_folder_is_written_where_it_is_and_its_usual_path_is_hidden() {
    let mut boundary = boundary();
    boundary.mapped =
        vec![Mapped { source: "/private/var/folders/s/tmp".into(), target: "/tmp".into() }];
    let profile = text(&boundary);
    assert!(allows(&profile, "file-write-data", "/private/var/folders/s/tmp/x"));
    assert!(!allows(&profile, "file-read-data", "/private/var/folders/s/other"));
    assert!(!allows(&profile, "file-write-data", "/private/tmp/x"));
}

/// A backend with a script in the place of `sandbox-exec`, which prints what it was given.
fn backend(folder: &Path, setup: Setup) -> SeatbeltBackend {
    use std::os::unix::fs::PermissionsExt as _;
    let program = folder.join("sandbox-exec");
    let script = "#!/bin/sh\n[ \"$1\" = -p ] || exit 9\nprintf '%s' \"$2\" > \"$PROFILE\"\nshift 2\nexec \"$@\"\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    SeatbeltBackend::with_program(program, setup)
}

#[test]
fn a_program_starts_in_its_folder_with_its_limits_and_finds_its_private_folders() {
    let folder = tempfile::tempdir().unwrap();
    let backend = backend(folder.path(), Setup::default());
    let mut boundary = boundary();
    boundary.mapped = vec![Mapped { source: "/private/s/tmp".into(), target: "/tmp".into() }];
    boundary.network = Network::Proxy("/no/such/socket".into());
    boundary.limits.cpu_seconds = Some(77);
    let arguments = [
        "-c".into(),
        "pwd; ulimit -t; ulimit -n; echo $TMPDIR $HTTPS_PROXY \"$0\"".into(),
        "it's $x".into(),
    ];
    let inside = InsideCommand {
        program: Path::new("/bin/sh"),
        arguments: &arguments,
        folder: Path::new("/usr"),
        is_trial: false,
        reached: &FirstReached::default(),
    };
    let command = backend.command(&boundary, &inside).unwrap();
    let profile = folder.path().join("profile");
    let variables = [("TMPDIR".into(), "/tmp".into()), ("PROFILE".into(), profile.clone().into())];
    let output = std::process::Command::new(&command.program)
        .args(&command.arguments)
        .envs(backend.variables(&boundary, variables.into()))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines[..3], ["/usr", "77", "4096"], "{output:?}");
    let profile = std::fs::read_to_string(profile).unwrap();
    let port = profile.split("localhost:").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert!(
        lines[3].starts_with("/private/s/tmp http://") && lines[3].ends_with("it's $x"),
        "{printed}"
    );
    assert!(
        lines[3].contains(&format!(":{port}")),
        "the variable names the port of the profile: {printed}"
    );
}

// Mutant: what cannot be enforced is accepted.
#[test]
fn settings_that_macos_cannot_enforce_are_errors_that_name_them() {
    let folder = tempfile::tempdir().unwrap();
    let usual = backend(folder.path(), Setup::default()).attest(&boundary()).unwrap();
    assert_eq!(usual.protections, ["fs", "net"]);
    assert_eq!(usual.missing.len(), 5, "{:?}", usual.missing);
    assert_eq!(usual.limits_by, [("fileSize", "rlimit"), ("openFiles", "rlimit")].into());
    assert_eq!(usual.has("syscalls"), Some(false));
    let mut limited = boundary();
    limited.limits.processes = Some(50);
    let error = backend(folder.path(), Setup::default()).attest(&limited).unwrap_err().to_string();
    assert!(error.contains("sandbox.limits.processes"), "{error}");
    let mut limited = boundary();
    limited.limits.session.disk = Some(50);
    let error = backend(folder.path(), Setup::default()).attest(&limited).unwrap_err().to_string();
    assert!(error.contains("sandbox.limits.session.disk"), "{error}");
    let setup = Setup { user_namespaces: true, ..Setup::default() };
    let error = backend(folder.path(), setup).attest(&boundary()).unwrap_err().to_string();
    assert!(error.contains("allowNestedUserNamespaces"), "{error}");
    let mut open = boundary();
    open.network = Network::Host;
    let open = backend(folder.path(), Setup::default()).attest(&open).unwrap();
    assert_eq!(open.has("net"), Some(false));
}
