//! Opens a session: a new one, an old one where it stopped or earlier, or a copy.

use std::path::PathBuf;

use ostler_proto::transcript::FileSnapshot;
use ostler_proto::{SessionId, Uuid};

use super::folder::{is_uuid, session_file};
use super::fork::ForkedSession;
use super::line::written_at;
use super::list::fork_title;
use super::{
    Clock, LineContext, Projects, StoreError, Transcript, TranscriptWriter, fork, guard, io_error,
    recent,
};
use crate::checkpoint;
use crate::ids::fresh_uuid;
use ostler_model::ChatMessage;

/// How a session begins: the values of `--resume`, `--continue`, `--fork-session`, `--resume-session-at`,
/// `--resume-drops-turn` and `--session-id`.
#[derive(Clone, Debug, Default)]
pub struct SessionStart {
    /// The conversation to begin with.
    pub begin: StartFrom,
    /// Whether to leave the old session unchanged and continue in a copy.
    pub fork: bool,
    /// The last message to keep.
    pub at: Option<Uuid>,
    /// The prompt of the only turn that resuming earlier may drop.
    pub drops_turn: Option<Uuid>,
    /// The id of a new or forked session; a random one otherwise.
    pub session_id: Option<SessionId>,
}

/// The conversation that a session begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StartFrom {
    /// None.
    #[default]
    New,
    /// The newest of the working directory.
    Latest,
    /// The one with this id, title or beginning of an id.
    Resume(String),
}

/// A session that has been opened.
#[derive(Debug)]
pub struct OpenedSession {
    /// Writes new messages. It knows the session's id and file.
    pub writer: TranscriptWriter,
    /// The conversation so far, in a form that the API accepts.
    pub conversation: Vec<ChatMessage>,
    /// Whether there was a conversation before: the source of `SessionStart` hooks is `resume` then.
    pub resumed: bool,
    /// How many lines of it could not be read.
    pub n_skipped: usize,
    /// The states of files before each of its prompts. A copy has its own backups.
    pub snapshots: Vec<FileSnapshot>,
    /// Another process writes to the same file: it will have the messages of both.
    pub is_in_use: bool,
}

impl Projects {
    /// Opens a session. Reads the file of a resumed one, from the last compaction on, so call it from a blocking
    /// thread.
    ///
    /// # Errors
    /// When there is no such session or message, the id is taken, more would be dropped than the caller named, or a
    /// file cannot be read or written.
    pub fn open(
        &self,
        scene: LineContext,
        start: &SessionStart,
    ) -> Result<OpenedSession, StoreError> {
        let old = match &start.begin {
            StartFrom::New => {
                let id = self.new_id(start)?;
                let writer = TranscriptWriter::create(&self.folder(&scene.cwd), id, scene)?;
                return Ok(OpenedSession {
                    writer,
                    conversation: Vec::new(),
                    resumed: false,
                    n_skipped: 0,
                    snapshots: Vec::new(),
                    is_in_use: false,
                });
            }
            StartFrom::Latest => self.latest(&scene.cwd).ok_or(StoreError::NothingToContinue)?.id,
            StartFrom::Resume(key) => self.find(&scene.cwd, key)?,
        };
        if start.session_id.is_some() && !start.fork {
            return Err(StoreError::IdNeedsFork);
        }
        let not_found = || StoreError::NotFound(old.to_string());
        let path = self.file(Some(&scene.cwd), &old).ok_or_else(not_found)?;
        // An earlier message may be anywhere in the file.
        let recent = match start.at {
            None => recent::read(&path).map_err(io_error("read", &path))?,
            Some(_) => None,
        };
        let transcript = match recent {
            Some(recent) => recent,
            None => Transcript::read(&path)?,
        };
        let tree = transcript.tree();
        let leaf = match &start.at {
            None => tree.leaf().ok_or_else(not_found)?,
            Some(uuid) => {
                tree.position(uuid.as_str()).filter(|at| tree.is_ours(*at)).ok_or_else(|| {
                    StoreError::NoSuchMessage { session: old.clone(), message: uuid.clone() }
                })?
            }
        };
        let chain = tree.chain(leaf);
        if let (Some(_), Some(prompt)) = (&start.at, &start.drops_turn) {
            guard::check(transcript.lines(), &tree, &chain, prompt)?;
        }
        let conversation = transcript.conversation_to(&tree, leaf);
        let (mut writer, snapshots) = if start.fork {
            self.fork(&transcript, &chain, path, old, scene, start)?
        } else {
            let last = if start.at.is_none() { tree.end(leaf) } else { leaf };
            let leaf = super::line::links(&transcript.lines()[last]).map(|links| links.uuid.into());
            let writer = TranscriptWriter::go_on(path, old, scene, leaf, clock(&transcript));
            (writer, checkpoint::snapshots(transcript.lines()))
        };
        let n_skipped = transcript.n_skipped();
        let is_in_use = writer.claim();
        Ok(OpenedSession { writer, conversation, resumed: true, n_skipped, snapshots, is_in_use })
    }

    fn fork(
        &self,
        transcript: &Transcript,
        chain: &[usize],
        source: PathBuf,
        old: SessionId,
        scene: LineContext,
        start: &SessionStart,
    ) -> Result<(TranscriptWriter, Vec<FileSnapshot>), StoreError> {
        let id = self.new_id(start)?;
        let path = session_file(&self.folder(&scene.cwd), &id);
        let title = fork_title(&source);
        let lines: Vec<_> = chain.iter().map(|at| &transcript.lines()[*at]).collect();
        let mut clock = clock(transcript);
        let snapshots = checkpoint::snapshots(transcript.lines());
        let ForkedSession { leaf, snapshots } =
            fork::write(&path, &lines, snapshots, &old, &id, &title, &mut clock)?;
        checkpoint::copy_backups(&source, &path, &snapshots);
        let writer = TranscriptWriter::go_on(path, id, scene, leaf, clock).in_copy();
        Ok((writer, snapshots))
    }

    fn new_id(&self, start: &SessionStart) -> Result<SessionId, StoreError> {
        let Some(id) = &start.session_id else { return Ok(fresh_uuid().as_str().into()) };
        if !is_uuid(id.as_str()) {
            return Err(StoreError::NotAUuid(id.to_string()));
        }
        // The id must be unused in all working directories: a session is found by its id alone.
        match self.file(None, id) {
            Some(_) => Err(StoreError::InUse(id.clone())),
            None => Ok(id.clone()),
        }
    }
}

/// A clock that is later than all lines of a transcript, even if the machine's clock is not.
pub(super) fn clock(transcript: &Transcript) -> Clock {
    Clock::after(transcript.lines().iter().map(written_at).max().unwrap_or_default())
}
