//! Inside the new view of files, processes and network: gives up the rest, then becomes the program.

use std::ffi::OsString;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{become_program, bridge, landlock_rules, spec, syscalls};
use crate::environment;
use crate::limits::Limits;
use crate::spec::InnerSpec;
use crate::sys;

pub(super) fn run(mut arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let spec: InnerSpec = spec(&mut arguments)?;
    // Descriptors that were inherited by mistake would lead out.
    sys::close_others_on_exec()
        .map_err(|error| format!("cannot close inherited descriptors: {error}"))?;
    rustix::thread::set_no_new_privs(true)
        .map_err(|error| format!("cannot give up new privileges: {error}"))?;
    if let Some(folder) = &spec.folder {
        std::env::set_current_dir(folder)
            .map_err(|error| format!("cannot enter {}: {error}", folder.display()))?;
    }
    let mut environment = environment::restored();
    if let Some(proxy) = &spec.proxy {
        let variables = bridge::start(proxy)?;
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        environment.extend(variables);
    }
    limit(&spec.limits)?;
    if spec.layers.landlock {
        landlock_rules::apply(&spec.writable)?;
    }
    if spec.layers.seccomp {
        syscalls::apply(spec.unix_sockets, spec.user_namespaces)?;
    }
    Err(become_program(arguments, environment))
}

fn limit(limits: &Limits) -> Result<(), String> {
    let Limits { processes, memory, file_size, open_files, cpu_seconds, .. } = limits;
    // A crash must not write the memory of a process to disk.
    let all = [
        (Resource::Core, &Some(0), "core dumps"),
        (Resource::Nproc, processes, "processes"),
        (Resource::Data, memory, "memory"),
        (Resource::Fsize, file_size, "file size"),
        (Resource::Nofile, open_files, "open files"),
        (Resource::Cpu, cpu_seconds, "processor time"),
    ];
    for (resource, most, name) in all {
        let Some(most) = *most else { continue };
        // The limit that this process has may be lower.
        let most = getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).map_err(|error| format!("cannot limit {name}: {error}"))?;
    }
    Ok(())
}
