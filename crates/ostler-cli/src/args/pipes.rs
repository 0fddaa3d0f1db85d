//! Options that name a file, given a pipe by its descriptor: `--mcp-config <(command)`.
//!
//! A pipe can be read once only, and files of options are read in several places. So what is in it takes the place of its
//! path before anything starts. `--replay` is left to the engine, which reads a recording once.

use std::path::Path;

use ostler_files::read_passed_pipe;
use serde_json::Value;

use super::Args;

/// The most that is read, in bytes: as with files.
const LONGEST: u64 = 4 * 1024 * 1024;

impl Args {
    /// Reads the pipes among the options.
    ///
    /// # Errors
    /// When one cannot be read, or what is in it is not what the option takes; the text names the option.
    pub(crate) fn read_pipes(&mut self) -> Result<(), String> {
        if let Some(settings) = &mut self.settings {
            take_json("--settings", settings)?;
        }
        for servers in &mut self.more.mcp_config {
            take_json("--mcp-config", servers)?;
        }
        let path = self.wire.system_prompt_file.as_ref();
        if let Some(text) = path.and_then(|path| read("--system-prompt-file", path)) {
            self.system_prompt = Some(text?);
            self.wire.system_prompt_file = None;
        }
        Ok(())
    }
}

/// Puts the JSON that is in a pipe in place of its path.
fn take_json(option: &str, value: &mut String) -> Result<(), String> {
    let Some(text) = read(option, Path::new(value)) else { return Ok(()) };
    let text = text?;
    let wrong = |reason: &str| format!("{option} {value}: what was read is {reason}");
    match serde_json::from_str(&text) {
        Ok(Value::Object(_)) => *value = text,
        Ok(_) => return Err(wrong("not a JSON object")),
        Err(error) => return Err(wrong(&format!("not JSON: {error}"))),
    }
    Ok(())
}

fn read(option: &str, path: &Path) -> Option<Result<String, String>> {
    let read = read_passed_pipe(path, LONGEST)?;
    Some(read.map_err(|refusal| format!("{option} {}: {refusal}", path.display())))
}
