//! `--debug` and `--debug-file`: one line per frame sent or received, without its content.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use ostler_proto::frame::Frame;
use parking_lot::Mutex;

use crate::args::Args;

/// The log file or standard error, if debugging is on. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Debug(Option<Arc<Log>>);

struct Log {
    begun: Instant,
    to: Mutex<Box<dyn Write + Send>>,
}

impl Debug {
    /// Opens the log that the arguments name.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn of(args: &Args) -> anyhow::Result<Self> {
        let to: Box<dyn Write + Send> = match (&args.wire.debug_file, &args.wire.debug) {
            (Some(path), _) => {
                // Opening a pipe would wait until another program reads from it.
                let is_pipe = path.metadata().is_ok_and(|file| file.file_type().is_fifo());
                anyhow::ensure!(
                    !is_pipe,
                    "--debug-file {}: this is a pipe; name a file",
                    path.display()
                );
                let opened: std::io::Result<File> =
                    OpenOptions::new().append(true).create(true).mode(0o600).open(path);
                Box::new(opened.with_context(|| format!("--debug-file {}", path.display()))?)
            }
            (None, Some(_)) => Box::new(std::io::stderr()),
            (None, None) => return Ok(Self(None)),
        };
        let log = Log { begun: Instant::now(), to: Mutex::new(to) };
        Ok(Self(Some(Arc::new(log))))
    }

    /// Logs a frame and its direction: `<` to the engine, `>` from the engine.
    pub(crate) fn note(&self, direction: char, frame: &impl Frame) {
        let Some(log) = &self.0 else { return };
        let line =
            format!("{:9.3} {direction} {}\n", log.begun.elapsed().as_secs_f64(), frame.summary());
        // A log that cannot be written must not stop the session.
        let _ = log.to.lock().write_all(line.as_bytes());
    }
}
