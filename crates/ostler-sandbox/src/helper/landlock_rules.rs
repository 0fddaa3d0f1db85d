//! The kernel's rules about files: everything may be read, only the listed paths may be written. A second lock behind the
//! view of files, in case a mount is wrong.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};

/// The newest version of the rules that is used. Later ones also restrict what the program does with its own network.
const NEWEST: ABI = ABI::V6;

/// Devices that every program may write: `/dev` inside a sandbox has no others.
const DEVICES: &str = "/dev";

pub(super) fn apply(writable: &[PathBuf]) -> Result<(), String> {
    restrict(writable)
        .map_err(|error| format!("cannot restrict access to files (Landlock): {error}"))
}

fn restrict(writable: &[PathBuf]) -> Result<(), Box<dyn std::error::Error>> {
    let ruleset = Ruleset::default()
        // Without the first version there are no rules at all.
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    let mut rules = ruleset.create()?;
    let read = AccessFs::from_read(NEWEST);
    rules = rules.add_rule(PathBeneath::new(PathFd::new("/")?, read))?;
    for path in writable.iter().map(PathBuf::as_path).chain([Path::new(DEVICES)]) {
        let all = match path.is_dir() {
            true => AccessFs::from_all(NEWEST),
            false => AccessFs::from_file(NEWEST),
        };
        rules = rules.add_rule(PathBeneath::new(PathFd::new(path)?, all))?;
    }
    match rules.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err("the kernel does not have it".into()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}
