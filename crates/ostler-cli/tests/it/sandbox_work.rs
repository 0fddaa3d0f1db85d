//! Ordinary work inside the sandbox, in one session: clone, build, test, a development server and its client.

use std::fs;
use std::path::Path;
use std::process::Command;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::Ostler;

/// The commands, and what their results contain. `TOOLS` is the folder of cargo, `SOURCE` a repository elsewhere.
const WORK: &[(&str, &str)] = &[
    // The working directory is a repository itself. No placeholder is added.
    (
        "git add -A && git -c user.name=a -c user.email=a@b commit -qm all && git status --short; git ls-files | grep -c '^[.]'; echo committed",
        "content\":\"0\\ncommitted",
    ),
    ("git clone -q SOURCE repo && git -C repo log --oneline | grep -c 'first change'", "1"),
    (
        "cd repo && echo more >> a.txt && git -c user.name=a -c user.email=a@b commit -qam second && git log --oneline | wc -l",
        "2",
    ),
    (
        "export PATH=TOOLS:$PATH; cd ../rust && cargo build -q --offline && ./target/debug/app",
        "built with a dependency",
    ),
    (
        "cd ../node && npm install --offline --no-audit --no-fund --silent && npm test --silent",
        "tested by node",
    ),
    ("cd ../python && python3 -m unittest -v 2>&1 | tail -n 1", "OK"),
    (
        "cd .. && printf 'all:\\n\\techo made by $$(uname)\\n' > Makefile && make -s",
        "made by Linux",
    ),
    (
        "echo served > page.txt; BACKGROUND python3 -m http.server 8731 --bind 127.0.0.1",
        "runs in the background",
    ),
    (
        "curl -sS --retry 30 --retry-delay 1 --retry-connrefused http://127.0.0.1:8731/page.txt",
        "served",
    ),
];

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Small projects whose dependencies are next to them.
const PROJECTS: &[(&str, &str)] = &[
    (
        "rust/Cargo.toml",
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\ndep = { path = \"vendor/dep\" }\n[workspace]\n",
    ),
    ("rust/src/main.rs", "fn main() { println!(\"built with {}\", dep::NAME); }\n"),
    (
        "rust/vendor/dep/Cargo.toml",
        "[package]\nname = \"dep\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    ),
    ("rust/vendor/dep/src/lib.rs", "pub const NAME: &str = \"a dependency\";\n"),
    (
        "node/package.json",
        "{\"name\": \"app\", \"version\": \"1.0.0\", \"dependencies\": {\"dep\": \"file:./dep\"}, \"scripts\": {\"test\": \"node test.js\"}}",
    ),
    (
        "node/test.js",
        "const { Worker } = require('worker_threads'); new Worker(\"require('worker_threads').parentPort.postMessage(1)\", { eval: true }).on('message', () => console.log(require('dep')));\n",
    ),
    ("node/dep/package.json", "{\"name\": \"dep\", \"version\": \"1.0.0\"}"),
    ("node/dep/index.js", "module.exports = 'tested by node';\n"),
    (
        "python/test_it.py",
        "import unittest, multiprocessing\ndef twice(n): return 2 * n\nclass T(unittest.TestCase):\n    def test_pool(self):\n        with multiprocessing.Pool(2) as pool: self.assertEqual(pool.map(twice, [1, 2]), [2, 4])\n",
    ),
];

fn sysroot() -> String {
    let printed = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    String::from_utf8(printed.stdout).unwrap().trim().to_owned()
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.current_dir(folder).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments);
    assert!(git.status().unwrap().success(), "{arguments:?}");
}

// Mutants: `Sandbox::network` answers `None` (the last row fails); `/dev/shm` cannot be written (the Python row fails); the
// placeholder of `.git/commondir` is empty, or placeholders are files (the first row fails).
#[tokio::test(flavor = "multi_thread")]
async fn a_session_clones_builds_tests_and_serves_inside() {
    let source = tempfile::tempdir().unwrap();
    fs::write(source.path().join("a.txt"), "a\n").unwrap();
    for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "first change"]] {
        git(source.path(), arguments);
    }
    let sysroot = sysroot();
    let source = source.path().to_str().unwrap();
    let filled =
        |text: &str| text.replace("SOURCE", source).replace("TOOLS", &format!("{sysroot}/bin"));
    let rows: Vec<_> =
        WORK.iter().map(|(command, expected)| (filled(command), *expected)).collect();
    work(&rows, json!([sysroot, source])).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pytest from PyPI: OSTLER_SERVER_PYTHON"]
async fn pytest_works_inside() {
    let environment =
        std::env::var("OSTLER_SERVER_PYTHON").expect("OSTLER_SERVER_PYTHON is not set");
    let command = format!("cd python && {environment}/bin/python -m pytest -q 2>&1 | tail -n 1");
    // It writes a cache.
    let cached = "ls -A".to_owned();
    // The interpreter itself may be in a home directory.
    let python = fs::canonicalize(format!("{environment}/bin/python")).unwrap();
    let readable = json!([environment, python.ancestors().nth(2)]);
    work(&[(command, "1 passed"), (cached, ".pytest_cache")], readable).await;
}

/// Runs commands in one session and checks their results.
async fn work(rows: &[(String, &str)], readable: Value) {
    let mut script = Script::new();
    for (turn, (command, _)) in rows.iter().enumerate() {
        let mut input = json!({"command": command, "description": "Work", "timeout": 300_000});
        if let Some((before, server)) = command.split_once("BACKGROUND ") {
            input["command"] = json!(format!("{before}exec {server}"));
            input["run_in_background"] = json!(true);
        }
        script = script.rule(when().turn(turn), reply().tool_use("Bash", input));
    }
    let api = ScriptedApi::start(script.rule(when(), reply().text("Done."))).await;
    let ostler = Ostler::new()
        .env("ANTHROPIC_BASE_URL", &api.base_url())
        .env("ANTHROPIC_API_KEY", "key")
        .env("IS_SANDBOX", "1");
    write(ostler.folder.path(), PROJECTS);
    git(ostler.folder.path(), &["init", "-q"]);
    let settings = json!({"sandbox": {"enabled": true, "filesystem": {"allowRead": readable}}});
    let settings = settings.to_string();
    let mode = ["--permission-mode", "bypassPermissions", "--settings", &settings];
    let ran = ostler.run(&[&["-p", "work", "--max-turns", "20"], &mode[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let requests = api.requests();
    let results: Vec<Value> = requests.iter().map(|request| request.body.clone()).collect();
    for (turn, (command, expected)) in rows.iter().enumerate() {
        let body = results[turn + 1].to_string();
        let result = &body[body.rfind("tool_result").unwrap()..];
        assert!(result.contains(expected), "{command}: {result}");
    }
}
