//! Options that name a file and are given a pipe by its descriptor: `--mcp-config <(command)`.
//!
//! A pipe can be read only once, but option files are read in several places. So the pipe's content replaces its path
//! before anything starts. `--replay` is left to the engine, which reads a recording only once.

use std::path::Path;

use ostler_files::read_passed_pipe;
use serde_json::Value;

use super::Args;

/// The most bytes read from a pipe, the same limit as for files.
const LONGEST: u64 = 4 * 1024 * 1024;

impl Args {
    /// Replaces each pipe among the options with its content.
    ///
    /// # Errors
    /// When a pipe cannot be read, or its content is not valid for the option. The text names the option.
    pub(crate) fn read_pipes(&mut self) -> Result<(), String> {
        if let Some(settings) = &mut self.launch.settings
            && let Some((text, _)) = read_object("--settings", settings)?
        {
            *settings = text;
        }
        let places = match &mut self.launch.mcp_config {
            Some(Value::Array(places)) => places.as_mut_slice(),
            Some(place) => std::slice::from_mut(place),
            None => &mut [],
        };
        for place in places {
            if let Value::String(path) = &*place
                && let Some((_, servers)) = read_object("--mcp-config", path)?
            {
                *place = servers;
            }
        }
        let path = self.wire.system_prompt_file.as_ref();
        if let Some(text) = path.and_then(|path| read("--system-prompt-file", path)) {
            self.launch.system_prompt = Some(text?);
            self.wire.system_prompt_file = None;
        }
        Ok(())
    }
}

/// The JSON object in a pipe, as text and as a value; `None` if the path does not lead to a pipe.
fn read_object(option: &str, path: &str) -> Result<Option<(String, Value)>, String> {
    let Some(text) = read(option, Path::new(path)) else { return Ok(None) };
    let text = text?;
    let wrong = |reason: &str| format!("{option} {path}: its content is {reason}");
    match serde_json::from_str(&text) {
        Ok(object @ Value::Object(_)) => Ok(Some((text, object))),
        Ok(_) => Err(wrong("not a JSON object")),
        Err(error) => Err(wrong(&format!("not JSON: {error}"))),
    }
}

fn read(option: &str, path: &Path) -> Option<Result<String, String>> {
    let read = read_passed_pipe(path, LONGEST)?;
    Some(read.map_err(|refusal| format!("{option} {}: {refusal}", path.display())))
}
