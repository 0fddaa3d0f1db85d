//! Which servers a session finds, and how their files are changed.

use std::fs;

use ostler_engine::settings::McpjsonChoices;
use ostler_proto::launch::Launch;
use ostler_proto::mcp::McpServerConfig;
use serde_json::json;
use tempfile::TempDir;

use super::*;

/// A home directory with a project in it.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("work/project/.git")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, value: &Value) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    }

    /// `~/.claude.json` with this entry for the project.
    fn user_file(&self, project: &Value) {
        let project = json!({self.path("work/project").to_str().unwrap(): project});
        let servers = json!({"of_user": {"command": "user"}, "both": {"command": "user"}});
        self.write(".claude.json", &json!({"mcpServers": servers, "projects": project}));
    }

    fn context(&self, launch: Launch) -> StartContext {
        let mut context = StartContext::new(launch, self.path("work/project"));
        context.env.replaces = true;
        let home = self.folder.path().canonicalize().unwrap().display().to_string();
        context.env.variables.insert("HOME".to_owned(), home);
        context
    }

    fn find(&self, context: &StartContext, settings: &Settings) -> ServerFiles {
        let folders = Folders { managed: None, ..rules::folders(context) };
        find(context, &folders, settings).unwrap()
    }

    /// The servers as `name command`, and the number of warnings.
    fn found(&self, settings: &Settings) -> (Vec<String>, usize) {
        let found = self.find(&self.context(Launch::default()), settings);
        (told(&found), found.warnings.len())
    }
}

fn told(found: &ServerFiles) -> Vec<String> {
    let told = found.servers.iter().map(|(name, known)| match &known.config {
        McpServerConfig::Stdio(server) => format!("{name} {} {}", server.command, known.scope),
        _ => format!("{name} {}", known.scope),
    });
    told.collect()
}

fn approving(names: &[&str]) -> Settings {
    let enabled = names.iter().map(|name| (*name).to_owned()).collect();
    let mcpjson = McpjsonChoices { enabled, ..McpjsonChoices::default() };
    Settings { mcpjson, ..Settings::default() }
}

fn servers(names: &[&str], command: &str) -> Value {
    let entry = |name: &&str| ((*name).to_owned(), json!({"command": command}));
    json!({"mcpServers": Map::from_iter(names.iter().map(entry))})
}

// Mutants: user scope before project, project before local; the working directory in place of the repository.
#[test]
fn the_nearest_scope_wins_and_the_command_line_wins_over_all() {
    let home = Home::new();
    let names = ["a", "b", "c", "both"];
    home.write("work/.mcp.json", &servers(&["above", "a", "both"], "above"));
    home.write("work/project/.mcp.json", &servers(&names, "project"));
    home.user_file(&json!({"mcpServers": {"a": {"command": "local"}, "b": {"command": "local"}}}));
    let launch = Launch {
        mcp_config: Some(json!([servers(&["a", "d"], "first"), servers(&["a"], "second")])),
        ..Launch::default()
    };
    let approved = approving(&["a", "b", "c", "both", "above"]);
    let mut context = home.context(launch);
    let expected = [
        "a second dynamic",
        "above above project",
        "b local local",
        "both project project",
        "c project project",
        "d first dynamic",
        "of_user user user",
    ];
    assert_eq!(told(&home.find(&context, &approved)), expected);
    fs::create_dir(home.path("work/project/sub")).unwrap();
    context.cwd = home.path("work/project/sub");
    assert_eq!(told(&home.find(&context, &approved)), expected, "in a folder of the repository");
    context.cwd = home.path("work/project");
    // A server of the project that is not approved does not hide one of the user.
    assert!(told(&home.find(&context, &approving(&[]))).contains(&"both user user".to_owned()));
    let sources = |sources: Vec<SettingSource>| {
        let mut context = context.clone();
        (context.launch.setting_sources, context.launch.mcp_config) = (Some(sources), None);
        told(&home.find(&context, &approved))
    };
    assert_eq!(sources(Vec::new()), [""; 0]);
    assert_eq!(sources(vec![SettingSource::User]), ["both user user", "of_user user user"]);
    assert_eq!(sources(vec![SettingSource::Local]), ["a local local", "b local local"]);
    assert_eq!(sources(vec![SettingSource::Project]).len(), 5);
    context.launch.strict_mcp_config = true;
    assert_eq!(
        told(&home.find(&context, &approved)),
        ["a second dynamic", "d first dynamic"],
        "--strict-mcp-config"
    );
}

// Mutants: `.claude.json` does not approve; it does not reject; an unreadable one rejects nothing.
#[test]
fn choices_of_the_users_own_file_count() {
    let home = Home::new();
    home.write("work/project/.mcp.json", &servers(&["a", "b"], "project"));
    let check = |project: Value, settings: &Settings, expected: &[&str], n_warnings: usize| {
        home.user_file(&project);
        let (found, warned) = home.found(settings);
        let of_project: Vec<_> = found.iter().filter(|it| it.ends_with("project")).collect();
        assert_eq!(
            (of_project, warned),
            (
                expected.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>().iter().collect(),
                n_warnings
            ),
            "{project}"
        );
    };
    let none = Settings::default();
    let (a, b) = ("a project project", "b project project");
    check(json!({}), &none, &[], 1);
    check(json!({"enabledMcpjsonServers": ["a"]}), &none, &[a], 1);
    check(json!({"enableAllProjectMcpServers": true}), &none, &[a, b], 0);
    check(json!({"enableAllProjectMcpServers": "true"}), &none, &[], 1);
    check(json!({"disabledMcpjsonServers": ["a"]}), &approving(&["a", "b"]), &[b], 0);
    check(json!({"disabledMcpjsonServers": "a"}), &approving(&["a", "b"]), &[], 1);
    let project = home.path("work/project").display().to_string();
    for odd in [json!([]), json!({"projects": []}), json!({"projects": {project: []}})] {
        home.write(".claude.json", &odd);
        let (found, warned) = home.found(&approving(&["a", "b"]));
        assert_eq!((found, warned), (Vec::new(), 2), "what the file rejects is not known: {odd}");
    }
}

// Mutants: trust is not looked at; git is not looked at; every file that git has counts as not tracked.
#[test]
fn approvals_that_the_vendors_dialog_wrote_count_unless_they_come_with_the_project() {
    let home = Home::new();
    home.write("work/project/.mcp.json", &servers(&["a"], "project"));
    let approval = json!({"enabledMcpjsonServers": ["a"]});
    home.write("work/project/.claude/settings.local.json", &approval);
    let starts = |trust: Value| {
        home.user_file(&json!({"hasTrustDialogAccepted": trust}));
        home.found(&Settings::default()).0.contains(&"a project project".to_owned())
    };
    assert!(starts(json!(true)));
    assert!(!starts(json!(false)) && !starts(json!("true")) && !starts(Value::Null));
    let index = home.path("work/project/.git/index");
    for (content, expected) in [
        (&b"DIRC\0\0\0\x02 src/main.rs"[..], true),
        (b"DIRC\0\0\0\x02 .claude/settings.local.json", false),
        (b"DIRC\0\0\0\x03 link", false),
        (b"DIRC\0\0\0\x04 src/main.rs", false),
        (b"", false),
    ] {
        fs::write(&index, content).unwrap();
        assert_eq!(starts(json!(true)), expected, "{content:?}");
    }
    fs::remove_dir_all(home.path("work/project/.git")).unwrap();
    assert!(starts(json!(true)), "without a repository");
    fs::write(home.path("work/project/.git"), "gitdir: elsewhere").unwrap();
    assert!(!starts(json!(true)), "the index of a worktree is elsewhere");
}

// Mutant: a server that is switched off starts.
#[test]
fn a_server_that_the_user_switched_off_stays_off() {
    let home = Home::new();
    home.write("work/project/.mcp.json", &servers(&["a"], "project"));
    home.user_file(
        &json!({"disabledMcpServers": ["a", "of_user"], "enabledMcpjsonServers": ["a"]}),
    );
    let found = home.find(&home.context(Launch::default()), &Settings::default());
    let off = |name: &str| found.servers[name].is_disabled;
    assert!(off("a") && off("of_user") && !off("both"));
}

// Mutants: the first bad entry ends the loop; the name or the file is not named.
#[test]
fn a_bad_entry_harms_only_itself_wherever_it_is_and_says_what_is_wrong() {
    let bad = [
        ("url", json!({"url": "http://x"}), "`type`"),
        ("number", json!(3), "found a number"),
        ("args", json!({"command": "x", "args": "y"}), "args"),
        ("kind", json!({"type": "carrier-pigeon"}), "carrier-pigeon"),
        ("empty", json!({}), "command"),
        ("inside", json!({"type": "sdk", "name": "inside"}), "not possible in a file"),
        ("variable", json!({"command": "${NOT_SET_AT_ALL}"}), "NOT_SET_AT_ALL"),
    ];
    let mut entries = Map::new();
    for (name, entry, _) in &bad {
        entries.insert((*name).to_owned(), entry.clone());
        entries.insert(format!("good_{name}"), json!({"command": "x"}));
    }
    let home = Home::new();
    let config = json!({"mcpServers": entries});
    let all = Settings {
        mcpjson: McpjsonChoices { all: true, ..Default::default() },
        ..Settings::default()
    };
    let files = [".claude.json", "work/project/.mcp.json", "work/project/file.json", ""];
    for file in files {
        let home = if file.is_empty() { &home } else { &Home::new() };
        let mut launch = Launch::default();
        match file {
            "" => launch.mcp_config = Some(config.clone()),
            "work/project/file.json" => launch.mcp_config = Some(json!("file.json")),
            _ => {}
        }
        if !file.is_empty() {
            home.write(file, &config);
        }
        let found = home.find(&home.context(launch), &all);
        assert!(found.warnings.is_empty(), "{:?}", found.warnings);
        let place = if file.is_empty() {
            "--mcp-config".to_owned()
        } else {
            home.path(file).display().to_string()
        };
        for (name, _, reason) in &bad {
            let is_of_host = *name == "inside" && found.servers[*name].scope == "dynamic";
            if is_of_host {
                continue;
            }
            let problem = found.servers[*name].problem.as_deref().unwrap_or_default();
            for part in [reason, *name, &place] {
                assert!(problem.contains(part), "{file} {name}: {part} in {problem}");
            }
            assert_eq!(found.servers[&format!("good_{name}")].problem, None);
        }
    }
}

#[test]
fn a_configuration_that_cannot_be_read_is_an_error_on_the_command_line_and_a_warning_elsewhere() {
    let home = Home::new();
    for (config, part) in [
        (json!("/no/such/file"), "/no/such/file"),
        (json!("{\"mcpServers\": {"), "not valid JSON"),
        (json!({"mcpServers": [1]}), "a list"),
    ] {
        let context = home.context(Launch { mcp_config: Some(config), ..Launch::default() });
        let folders = Folders { managed: None, ..rules::folders(&context) };
        let error = find(&context, &folders, &Settings::default()).err().unwrap();
        assert!(error.to_string().contains(part), "{error}");
    }
    home.write("work/.mcp.json", &servers(&["above"], "x"));
    home.write("work/project/.mcp.json", &json!([1]));
    let (found, warned) = home.found(&approving(&["above"]));
    assert_eq!((found, warned), (vec!["above x project".to_owned()], 1));
}

// Mutants: an untrusted project may run a command for headers, or allow its own tools.
#[test]
fn a_project_that_is_not_trusted_gets_no_command_for_headers_and_allows_no_tools() {
    let home = Home::new();
    let tools = json!([{"name": "x", "permission_policy": "always_allow"}]);
    let entry = json!({"type": "http", "url": "http://x", "headersHelper": "touch /tmp/x"});
    let other = json!({"command": "x", "tools": tools});
    home.write("work/project/.mcp.json", &json!({"mcpServers": {"a": entry, "b": other}}));
    let mut context = home.context(Launch::default());
    let found = home.find(&context, &approving(&["a", "b"]));
    let problem = found.servers["a"].problem.as_deref().unwrap();
    assert!(problem.contains("headersHelper") && problem.contains("--trust-project"), "{problem}");
    let granted =
        |found: &ServerFiles| json!(found.servers["b"].config).to_string().contains("always_allow");
    assert!(!granted(&found));
    context.trusts_project = true;
    let found = home.find(&context, &approving(&["a", "b"]));
    assert_eq!(found.servers["a"].problem, None);
    assert!(granted(&found));
}

// Mutant: `unused` is not asked.
#[test]
fn keys_for_signing_in_that_are_not_used_are_named() {
    let home = Home::new();
    let entry = |oauth: Value| json!({"type": "http", "url": "http://x", "oauth": oauth});
    let odd = entry(json!({"clientId": "c", "authServerMetadataUrl": "https://x", "xaa": true}));
    let servers = json!({"odd": odd, "fine": entry(json!({"clientId": "c", "scopes": "a"}))});
    home.write(".claude.json", &json!({"mcpServers": servers}));
    let found = home.find(&home.context(Launch::default()), &Settings::default());
    let [warning] = &found.warnings[..] else { panic!("{:?}", found.warnings) };
    let text = warning.to_string();
    assert!(
        text.contains("mcpServers.odd.oauth") && text.contains("authServerMetadataUrl, xaa"),
        "{text}"
    );
    assert_eq!(found.servers["odd"].problem, None);
}

#[test]
fn the_folder_of_the_project_can_be_named_in_an_entry() {
    let home = Home::new();
    let entry = json!({"command": "${CLAUDE_PROJECT_DIR}/x", "args": ["${CLAUDE_PROJECT_DIR:-.}"]});
    home.write(".claude.json", &json!({"mcpServers": {"a": entry}}));
    let found = home.find(&home.context(Launch::default()), &Settings::default());
    let McpServerConfig::Stdio(server) = &found.servers["a"].config else { panic!() };
    let project = home.path("work/project").display().to_string();
    assert_eq!(server.command, format!("{project}/x"));
    assert_eq!(server.args.as_deref(), Some(&[project][..]));
}

// Mutants: other servers are used too; a malformed file counts as missing.
#[test]
fn with_a_file_of_the_administrator_only_its_servers_are_used() {
    let home = Home::new();
    home.user_file(&json!({}));
    home.write("etc/managed-mcp.json", &servers(&["m"], "managed"));
    let launch = Launch { mcp_config: Some(servers(&["d", "m"], "mine")), ..Launch::default() };
    let context = home.context(launch);
    let managed = Some(home.path("etc/managed-settings.json"));
    let folders = Folders { managed, ..rules::folders(&context) };
    let found = find(&context, &folders, &Settings::default()).unwrap();
    assert_eq!(told(&found), ["d mine dynamic", "m managed managed"]);
    let refusal = |name: &str| found.lists.refusal(name, &found.servers[name].config);
    assert!(refusal("d").unwrap().contains("managed-mcp.json"));
    assert_eq!(refusal("m"), None);
    fs::write(home.path("etc/managed-mcp.json"), "{").unwrap();
    let error = find(&context, &folders, &Settings::default()).err().unwrap();
    assert!(error.to_string().contains("managed-mcp.json"), "{error}");
}

mod writing {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::write;
    use super::*;

    fn read(home: &Home, name: &str) -> String {
        fs::read_to_string(home.path(name)).unwrap()
    }

    // Mutants: unknown keys are dropped; keys are sorted; a second server of the same name replaces the first.
    #[test]
    fn a_change_keeps_everything_else_in_its_order() {
        let home = Home::new();
        let context = home.context(Launch::default());
        let before = "{\n  \"z\": 1.50,\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"x\",\n      \"new\": null\n    }\n  },\n  \"a\": [\n    12345678901234567890\n  ]\n}\n";
        fs::write(home.path(".claude.json"), before).unwrap();
        write::add(&context, Scope::User, "y", json!({"command": "y"})).unwrap();
        let after = read(&home, ".claude.json");
        let keys = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        assert_eq!(keys(&after).keys().collect::<Vec<_>>(), ["z", "mcpServers", "a"]);
        assert!(
            after.contains("12345678901234567890") && after.contains("\"new\": null"),
            "{after}"
        );
        let error = write::add(&context, Scope::User, "y", json!({"command": "z"})).unwrap_err();
        assert!(error.contains("exists already"), "{error}");
        assert_eq!(read(&home, ".claude.json"), after);
        assert!(write::remove(&context, Scope::User, "y").unwrap());
        assert!(!write::remove(&context, Scope::User, "y").unwrap());
        assert_eq!(keys(&read(&home, ".claude.json")), keys(before));
    }

    #[test]
    fn every_scope_has_its_place() {
        let home = Home::new();
        fs::create_dir(home.path("work/project/sub")).unwrap();
        let mut context = home.context(Launch::default());
        context.cwd = home.path("work/project/sub");
        for scope in [Scope::User, Scope::Local, Scope::Project] {
            write::add(&context, scope, scope.word(), json!({"command": "x"})).unwrap();
        }
        let user: Value = serde_json::from_str(&read(&home, ".claude.json")).unwrap();
        let project = home.path("work/project").display().to_string();
        let names = |value: &Value| {
            value["mcpServers"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(names(&user), ["user"]);
        assert_eq!(names(&user["projects"][&project]), ["local"]);
        let shared: Value =
            serde_json::from_str(&read(&home, "work/project/sub/.mcp.json")).unwrap();
        assert_eq!(names(&shared), ["project"]);
        let mode = fs::metadata(home.path(".claude.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it may hold secrets");
        assert!(write::add(&context, Scope::Dynamic, "x", json!({})).is_err());
    }

    #[test]
    fn choices_are_written_and_forgotten() {
        let home = Home::new();
        home.write("work/project/.mcp.json", &servers(&["a"], "project"));
        home.user_file(&json!({"disabledMcpjsonServers": [], "other": 1}));
        let context = home.context(Launch::default());
        assert!(!write::reset_choices(&context).unwrap());
        write::approve(&context, "a").unwrap();
        write::approve(&context, "a").unwrap();
        assert_eq!(home.found(&Settings::default()).1, 0);
        assert!(write::reset_choices(&context).unwrap());
        assert_eq!(home.found(&Settings::default()).1, 1);
        let user: Value = serde_json::from_str(&read(&home, ".claude.json")).unwrap();
        let project = home.path("work/project").display().to_string();
        assert_eq!(user["projects"][&project], json!({"other": 1}));
    }

    // Mutants: a malformed file is replaced; a link out of the project is followed.
    #[test]
    fn a_file_that_is_malformed_or_elsewhere_is_not_changed() {
        let home = Home::new();
        let context = home.context(Launch::default());
        fs::write(home.path(".claude.json"), "{\"a\": ").unwrap();
        let error = write::add(&context, Scope::Local, "x", json!({})).unwrap_err();
        assert!(error.contains("malformed") && error.contains(".claude.json"), "{error}");
        assert_eq!(read(&home, ".claude.json"), "{\"a\": ");
        home.write("elsewhere.json", &json!({}));
        let link = home.path("work/project/.mcp.json");
        std::os::unix::fs::symlink(home.path("elsewhere.json"), link).unwrap();
        let error = write::add(&context, Scope::Project, "x", json!({})).unwrap_err();
        assert!(error.contains("outside the project"), "{error}");
        assert_eq!(read(&home, "elsewhere.json"), "{}");
    }

    // Mutant: no lock.
    #[test]
    fn changes_at_the_same_time_are_all_written() {
        let home = Home::new();
        let context = home.context(Launch::default());
        std::thread::scope(|scope| {
            for n in 0..16 {
                let context = &context;
                scope.spawn(move || {
                    write::add(context, Scope::User, &format!("s{n}"), json!({"command": "x"}))
                        .unwrap();
                });
            }
        });
        let user: Value = serde_json::from_str(&read(&home, ".claude.json")).unwrap();
        assert_eq!(user["mcpServers"].as_object().unwrap().len(), 16);
    }
}
