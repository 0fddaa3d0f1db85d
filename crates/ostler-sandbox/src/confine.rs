//! Starts programs of `ostler-process` in a sandbox.

use std::io;

use ostler_process::{Confine, ConfinedProgram, InsideProgram};

use crate::command::SandboxedCommand;
use crate::sandbox::Sandbox;

impl Confine for Sandbox {
    fn confine(&self, inside: InsideProgram<'_>) -> io::Result<ConfinedProgram> {
        let InsideProgram { program, arguments, folder, mut environment } = inside;
        let changes = &self.boundary().environment;
        environment
            .retain(|name, _| !changes.removed.iter().any(|removed| name == removed.as_str()));
        let set = changes.set.iter().map(|(name, value)| (name.into(), value.into()));
        environment.extend(set);
        let command = self.command(program, arguments, folder).map_err(io::Error::other)?;
        let SandboxedCommand { program, arguments, guard } = command;
        let environment = self.variables(environment);
        Ok(ConfinedProgram { program, arguments, environment, guard: Box::new(guard) })
    }
}
