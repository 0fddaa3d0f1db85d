//! Files for the host, as far as the session's rules allow.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ostler_files::RealPath;
use ostler_proto::build;
use ostler_proto::control::{ReadFile, ReadFileReply, SeedReadState};
use serde_json::{Value, json};

use crate::permissions::Permissions;
use crate::session::Session;

/// The most bytes of a file in one frame: some hosts read no line longer than a mebibyte.
const MOST_BYTES: u64 = 512 * 1024;

/// Reads files for the host, with the folder of relative paths and the rules. Everything here touches the disk.
struct Reader {
    cwd: PathBuf,
    permissions: Permissions,
}

impl Session {
    /// Reads a file in the working directories, unless a rule denies that.
    pub(in crate::session) fn reading(
        &self,
        read: &ReadFile,
    ) -> impl FnOnce() -> Result<Value, String> + Send + use<> {
        let (reader, read) = (self.reader(), read.clone());
        move || reader.read(&read)
    }

    /// The host has shown a file to the model: it counts as read, if it has not changed since.
    pub(in crate::session) fn seeding(
        &self,
        seed: &SeedReadState,
    ) -> impl FnOnce() -> Result<Value, String> + Send + use<> {
        let (reader, seed, tools) = (self.reader(), seed.clone(), Arc::clone(&self.context.tools));
        move || {
            let path = reader.readable(&seed.path)?;
            let changed = path.metadata().and_then(|found| found.modified());
            let changed = changed.map_err(|error| format!("{}: {error}", seed.path))?;
            let since = changed.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            // Hosts have the time in milliseconds, with or without fractions.
            if since.as_millis() as f64 <= seed.mtime.get().ceil() {
                tools.values().for_each(|tool| tool.note_read(&path));
            }
            Ok(json!({}))
        }
    }

    fn reader(&self) -> Reader {
        Reader { cwd: self.context.cx.cwd.clone(), permissions: self.context.permissions.clone() }
    }
}

impl Reader {
    fn read(&self, read: &ReadFile) -> Result<Value, String> {
        let path = self.readable(&read.path)?;
        let limit = read.max_bytes.unwrap_or(MOST_BYTES).min(MOST_BYTES);
        let failed = |error: std::io::Error| format!("{}: {error}", read.path);
        if !path.metadata().map_err(failed)?.is_file() {
            return Err(format!("read denied: {} is not a file", read.path));
        }
        let file = path.open().map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
        let truncated = bytes.len() as u64 > limit;
        bytes.truncate(limit as usize);
        let mut reply = build!(ReadFileReply {
            abs_path: path.as_path().display().to_string(),
            requested_path: Some(read.path.clone()),
            truncated: truncated.then_some(true)
        });
        if read.encoding.as_deref() == Some("base64") {
            reply.contents = BASE64_STANDARD.encode(&bytes);
            reply.encoding = Some("base64".to_owned());
        } else {
            let text = String::from_utf8_lossy(&bytes);
            // A character cut by the limit is not an error of the file.
            let cut = truncated && text.ends_with('\u{fffd}');
            reply.contents = text.trim_end_matches(|c| cut && c == '\u{fffd}').to_owned();
            reply.lossy = Some(reply.contents.contains('\u{fffd}'));
        }
        serde_json::to_value(reply).map_err(|error| error.to_string())
    }

    /// A path that may be read: inside the working directories, and no rule says otherwise.
    fn readable(&self, wanted: &str) -> Result<RealPath, String> {
        let denied = || format!("read denied: {wanted}");
        let path = self.cwd.join(wanted).canonicalize().map_err(|_| denied())?;
        let policy = self.permissions.policy();
        let is_inside =
            |known: &Path| known.canonicalize().is_ok_and(|known| path.starts_with(known));
        let is_ours = policy.working_directories().any(is_inside);
        match is_ours && policy.read_guard().may_show(&path) {
            true => RealPath::from_resolved(path).ok_or_else(denied),
            false => Err(denied()),
        }
    }
}
