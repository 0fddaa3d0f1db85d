//! The files of `ostler mcp` and of the vendor's `claude mcp` are the same files.

use std::fs;
use std::process::Command;

use crate::backends::vendor_paths;
use crate::run::{Ostler, Ran};

/// The vendor's program in the same folder and home directory, without any network but loopback.
fn vendor(ostler: &Ostler, arguments: &[&str]) -> Ran {
    let mut command = Command::new(vendor_paths::newer());
    ostler.furnish(&mut command);
    let child = command
        .args(arguments)
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    Ran::of(child)
}

#[test]
#[ignore = "starts the vendor's program, which `cargo xtask test` installs"]
fn either_program_reads_and_removes_what_the_other_added() {
    let ostler = Ostler::new();
    fs::create_dir(ostler.path("no-home")).unwrap();
    fs::create_dir(ostler.path(".git")).unwrap();
    fs::create_dir(ostler.path("sub")).unwrap();
    let entries: [&[&str]; 4] = [
        &["-s", "local", "-e", "A=1", "-t", "stdio", "l", "--", "/bin/false", "--x"],
        &["-s", "user", "-t", "http", "-H", "X-A: b", "--", "u", "http://127.0.0.1:9/mcp"],
        &["-s", "project", "p", "--", "/bin/false"],
        &["-s", "local", "-t", "sse", "s", "http://127.0.0.1:9/sse"],
    ];
    let read = |ran: Ran| -> String {
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
        ran.stdout
    };
    let files = || {
        let user: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(ostler.path("no-home/.claude.json")).unwrap())
                .unwrap();
        let project = ostler.folder.path().canonicalize().unwrap().display().to_string();
        let shared = fs::read_to_string(ostler.path(".mcp.json")).unwrap();
        let shared: serde_json::Value = serde_json::from_str(&shared).unwrap();
        (user["mcpServers"].clone(), user["projects"][project]["mcpServers"].clone(), shared)
    };
    for entry in entries {
        read(ostler.run(&[&["mcp", "add"], entry].concat()));
    }
    let ours = files();
    for (name, part) in
        [("l", "/bin/false"), ("u", "http://127.0.0.1:9/mcp"), ("p", "/bin/false"), ("s", "/sse")]
    {
        let shown = read(vendor(&ostler, &["mcp", "get", name]));
        assert!(shown.contains(part), "{shown}");
        // The vendor's program has its own question about servers of a project.
        assert_eq!(shown.contains("Pending approval"), name == "p", "{shown}");
    }
    for (name, scope) in [("l", "local"), ("u", "user"), ("p", "project"), ("s", "local")] {
        read(vendor(&ostler, &["mcp", "remove", name, "-s", scope]));
    }
    for entry in entries {
        read(vendor(&ostler, &[&["mcp", "add"], entry].concat()));
    }
    assert_eq!(files(), ours, "both write the same entries");
    let listed = read(ostler.run(&["mcp", "list"]));
    for (name, part) in [("l", "✗ failed"), ("u", "✗ failed"), ("p", ""), ("s", "✗ failed")] {
        let line = listed.lines().find(|line| line.starts_with(&format!("{name}: ")));
        assert!(line.is_some_and(|line| line.contains(part)), "{name}: {listed}");
    }
    read(vendor(&ostler, &["mcp", "reset-project-choices"]));
    let listed = read(ostler.run(&["mcp", "list"]));
    assert!(listed.contains("waits for your approval"), "{listed}");
    for name in ["l", "u", "p", "s"] {
        read(ostler.run(&["mcp", "remove", name]));
        assert_ne!(vendor(&ostler, &["mcp", "get", name]).code, Some(0), "{name}");
    }
}
