//! Runs the tests as a user without rights, if root runs them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// The variable with the helper's path.
pub(crate) const HELPER: &str = "OSTLER_TEST_HELPER";
/// A user that no system has.
const USER: &str = "54321";

#[test]
fn all_of_this_holds_for_a_user_without_rights() {
    if !rustix::process::geteuid().is_root() {
        // Then the other tests have shown it.
        return;
    }
    // Where that user can read them, wherever the tests are built.
    let folder = tempfile::tempdir().unwrap();
    let set = |path: &std::path::Path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    set(folder.path());
    let place = |from: &std::path::Path, name: &str| {
        let to = folder.path().join(name);
        fs::copy(from, &to).unwrap();
        set(&to);
        to
    };
    let tests = place(&std::env::current_exe().unwrap(), "it-copy");
    let helper = place(env!("CARGO_BIN_EXE_ostler-sandbox-helper").as_ref(), "helper");
    let own = folder.path().join("tmp");
    fs::create_dir(&own).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new("setpriv");
    command.args([
        format!("--reuid={USER}"),
        format!("--regid={USER}"),
        "--clear-groups".to_owned(),
    ]);
    command.arg(&tests).env(HELPER, &helper).env("TMPDIR", &own).env("HOME", &own);
    let output = command.current_dir("/").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains("running 0 tests"), "{text}");
}
