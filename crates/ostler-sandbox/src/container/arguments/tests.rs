//! Command lines as text, for both programs.

use super::*;
use crate::boundary::{Kind, Mapped, Network, Protected};
use crate::reached::FirstReached;

fn arguments(
    engine: Engine,
    is_root: bool,
    boundary: &Boundary,
) -> Result<Vec<String>, SandboxError> {
    let views = plan::views(boundary)?;
    let inside = InsideCommand {
        program: Path::new("bash"),
        arguments: &["-c".into(), "echo $HOME".into()],
        folder: Path::new("/w"),
        is_trial: false,
        reached: &FirstReached::default(),
    };
    let all = of(&Container {
        engine,
        image: "debian:bookworm",
        helper: Path::new("/opt/helper"),
        name: "ostler-1-2-3",
        user: (1000, 100),
        is_root,
        boundary,
        views: &views,
        inside: &inside,
    })?;
    Ok(all.into_iter().map(|it| it.into_string().unwrap()).collect())
}

fn has(all: &[String], pair: [&str; 2]) -> bool {
    all.windows(2).any(|window| window == pair)
}

// Mutants: without `--init`, `--cap-drop`, `--security-opt` or `--read-only`.
#[test]
fn a_container_has_no_network_no_rights_and_a_root_folder_that_cannot_be_written() {
    for engine in [Engine::Podman, Engine::Docker] {
        let mut boundary = Boundary::default();
        boundary.limits.memory = Some(4 << 30);
        let all = arguments(engine, false, &boundary).unwrap();
        assert_eq!(all[0], "run");
        for flag in ["--rm", "--init", "--read-only"] {
            assert!(all.iter().any(|it| it == flag), "{flag}: {all:?}");
        }
        for pair in [
            ["--network", "none"],
            ["--cap-drop", "ALL"],
            ["--security-opt", "no-new-privileges"],
            ["--user", "1000:100"],
            ["--pull", "never"],
            ["--name", "ostler-1-2-3"],
            ["--pids-limit", "1026"],
            ["--memory", "4294967296b"],
            ["--memory-swap", "4294967296b"],
            ["--env", PACKED],
            ["--tmpfs", "/tmp:rw,nosuid,nodev,mode=1777,size=1073741824"],
        ] {
            assert!(has(&all, pair), "{pair:?}: {all:?}");
        }
        for forbidden in ["--privileged", "--pid", "--publish", "--volume", "--device", "--cap-add"]
        {
            assert!(!all.iter().any(|it| it.split('=').next() == Some(forbidden)), "{forbidden}");
        }
        assert_eq!(has(&all, ["--userns", "keep-id"]), engine == Engine::Podman);
        let image = all.iter().position(|it| it == "debian:bookworm").unwrap();
        assert_eq!(all[image - 1], HELPER);
        assert_eq!(all[image + 1], INNER);
        assert_eq!(all[image + 3..], ["bash", "-c", "echo $HOME"]);
    }
    assert!(!has(
        &arguments(Engine::Podman, true, &Boundary::default()).unwrap(),
        ["--userns", "keep-id"]
    ));
}

#[test]
fn paths_are_shown_at_their_own_place_and_hidden_ones_are_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let path = |name: &str| root.join(name);
    for name in ["work/.git/hooks", "work/secret", "home/.cargo/bin", "private"] {
        std::fs::create_dir_all(path(name)).unwrap();
    }
    std::fs::write(path("work/key"), "").unwrap();
    let boundary = Boundary {
        writable: vec![path("work")],
        readable: vec![path("home/.cargo/bin")],
        hidden: vec![path("home"), path("work/secret"), path("work/key")],
        mapped: vec![Mapped { source: path("private"), target: "/tmp".into() }],
        protected: vec![Protected { path: path("work/.git/hooks"), kind: Kind::Folder }],
        network: Network::Proxy(path("socket")),
        ..Boundary::default()
    };
    let all = arguments(Engine::Docker, false, &boundary).unwrap();
    let root = root.display();
    for mount in [
        format!("type=bind,source={root}/work,target={root}/work"),
        format!("type=bind,source={root}/work/.git,target={root}/work/.git"),
        format!("type=bind,source={root}/work/.git/hooks,target={root}/work/.git/hooks,readonly"),
        format!("type=bind,source={root}/home/.cargo/bin,target={root}/home/.cargo/bin,readonly"),
        format!("type=bind,source=/dev/null,target={root}/work/key,readonly"),
        format!("type=bind,source={root}/private,target=/tmp"),
        format!("type=bind,source={root}/socket,target={}", plan::PROXY),
    ] {
        assert!(has(&all, ["--mount", &mount]), "{mount}: {all:#?}");
    }
    assert!(has(
        &all,
        ["--tmpfs", &format!("{root}/work/secret:ro,nosuid,nodev,mode=1777,size=4096")]
    ));
    let home = format!("target={root}/home");
    assert!(
        !all.iter().any(|it| it.ends_with(&home) || it.contains(&format!("{home},"))),
        "{all:#?}"
    );
}

// Mutant: the path is not looked at.
#[test]
fn a_path_that_would_be_another_option_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a,target=/etc", "a\"b", "a\nb"] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        let boundary = Boundary { writable: vec![path], ..Boundary::default() };
        let error = arguments(Engine::Podman, false, &boundary).unwrap_err().to_string();
        assert!(error.contains("Rename it"), "{error}");
    }
}
