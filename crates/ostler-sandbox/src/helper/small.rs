//! A small program next to this one that can be the helper: it starts several times as fast.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::spec::BUILD;

/// Its name.
const NAME: &str = "ostler-sandbox-helper";

/// The small helper, if it is next to `program`, belongs to the same user and was built from the same source.
pub(super) fn find(program: &Path) -> Option<PathBuf> {
    let helper = program.with_file_name(NAME);
    if helper == program {
        return None;
    }
    let (of_helper, of_program) = (helper.symlink_metadata().ok()?, program.metadata().ok()?);
    // Who can replace this program can replace the helper, but no other user.
    let is_safe = of_helper.is_file()
        && of_helper.uid() == of_program.uid()
        && of_helper.permissions().mode() & 0o022 == 0;
    let is_same = || {
        let mut command = Command::new(&helper);
        let output = command.arg(BUILD).env_clear().stdin(Stdio::null()).output();
        output.is_ok_and(|output| output.stdout == crate::spec::OF_THIS_BUILD.as_bytes())
    };
    (is_safe && is_same()).then_some(helper)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    // Mutants: anybody may write it; the build does not matter.
    #[test]
    fn only_a_helper_of_the_same_build_that_no_other_user_can_write_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let (program, helper) = (folder.path().join("ostler"), folder.path().join(NAME));
        fs::write(&program, "").unwrap();
        assert_eq!(find(&program), None);
        let write = |build: &str, mode: u32| {
            let script = format!("#!/bin/sh\n[ $1 = {BUILD} ] && printf %s '{build}'\n");
            fs::write(&helper, script).unwrap();
            fs::set_permissions(&helper, Permissions::from_mode(mode)).unwrap();
        };
        write(crate::spec::OF_THIS_BUILD, 0o755);
        assert_eq!(find(&program), Some(helper.clone()));
        write(crate::spec::OF_THIS_BUILD, 0o775);
        assert_eq!(find(&program), None);
        write("another build", 0o755);
        assert_eq!(find(&program), None);
        // The program itself.
        assert_eq!(find(&helper), None);
    }
}
