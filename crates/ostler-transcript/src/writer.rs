//! [`TranscriptWriter`]: appends messages to a session file, one whole line per `write` call.
//!
//! A written line survives the death of the process at once, and a power cut as soon as the system has flushed its
//! cache: there is no `fsync` per line, because readers tolerate a lost or incomplete end and a turn should not wait
//! for the disk. The file is created with the first line, so empty sessions leave no file.
//!
//! Each line is the parent of the next one. The vendor makes results children of their calls, but its old level then
//! forgets all but one of several calls when it resumes; it reads a plain chain completely.
//!
//! An append that fails loses only that line: the parent of the next one is the last written line.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::system::CompactBoundary;
use ostler_proto::message::{Assistant, System, User};
use ostler_proto::permission::PermissionMode;
use ostler_proto::transcript::{Entry, EntryContext, SystemEntry, TranscriptLine};
use ostler_proto::{AgentId, SessionId, ToolUseId, Uuid};
use serde_json::Value;

use super::file::{LineFile, create_private};
use super::folder::{git_branch, is_uuid, real_path, session_file};
use super::line::{calls, links, results};
use super::{Clock, StoreError, io_error};
use crate::ids::fresh_uuid;

/// The most bytes of lines in one frame, unless a single line is longer: half of the Python SDK's limit.
const MIRRORED_AT_ONCE: usize = ostler_proto::codec::PYTHON_LINE_LIMIT / 2;

/// Fields that are the same in all lines.
#[derive(Clone, Debug)]
pub struct LineContext {
    /// The working directory.
    pub cwd: PathBuf,
    /// The engine's version.
    pub version: String,
    /// Who started the engine: `sdk-ts`, `sdk-py`, `cli`.
    pub entrypoint: Option<String>,
}

/// Writes one session file, or that of one subagent.
#[derive(Debug)]
pub struct TranscriptWriter {
    file: LineFile,
    pub(super) session_id: SessionId,
    scene: LineContext,
    git_branch: Option<String>,
    agent: Option<AgentId>,
    /// The parent of the next line.
    leaf: Option<Uuid>,
    /// The lines of this turn's calls.
    calls: HashMap<ToolUseId, Uuid>,
    /// The newest response, and the line that was the leaf before it.
    response: Option<(String, Option<Uuid>)>,
    /// The line of the newest prompt.
    prompt: Option<Uuid>,
    pub(super) last_prompt: Option<String>,
    pub(super) clock: Clock,
    /// The file began as a copy of another session: its first lines were not written by this writer.
    is_copy: bool,
    /// Written lines for [`TranscriptWriter::take_mirrored`]; `None` without mirroring.
    mirrored: Option<Vec<Value>>,
}

impl TranscriptWriter {
    /// A writer for a new session in a folder of [`super::Projects::folder`].
    ///
    /// # Errors
    /// When the id is taken, or is not valid.
    pub fn create(
        folder: &Path,
        session_id: SessionId,
        scene: LineContext,
    ) -> Result<Self, StoreError> {
        if !is_uuid(session_id.as_str()) {
            return Err(StoreError::NotAUuid(session_id.to_string()));
        }
        let path = session_file(folder, &session_id);
        if path.exists() {
            return Err(StoreError::InUse(session_id));
        }
        Ok(Self::new(LineFile::new(path), session_id, scene))
    }

    /// A writer that continues an existing file after a leaf.
    pub(super) fn go_on(
        path: PathBuf,
        id: SessionId,
        scene: LineContext,
        leaf: Option<Uuid>,
        clock: Clock,
    ) -> Self {
        Self { leaf, clock, ..Self::new(LineFile::existing(path), id, scene) }
    }

    /// The writer, for a file that is a copy of another session.
    pub(super) fn in_copy(self) -> Self {
        Self { is_copy: true, ..self }
    }

    /// Shows other processes that the session is in use. Returns whether it was already. A file that cannot be opened
    /// is reported with the first line.
    pub(super) fn claim(&mut self) -> bool {
        self.file.claim().unwrap_or(false)
    }

    fn new(file: LineFile, session_id: SessionId, scene: LineContext) -> Self {
        let scene = LineContext { cwd: real_path(&scene.cwd), ..scene };
        Self {
            file,
            session_id,
            git_branch: git_branch(&scene.cwd),
            scene,
            agent: None,
            leaf: None,
            calls: HashMap::new(),
            response: None,
            prompt: None,
            last_prompt: None,
            clock: Clock::default(),
            is_copy: false,
            mirrored: None,
        }
    }

    /// A writer for another new session of the same project.
    ///
    /// # Errors
    /// When the id is taken, or is not valid.
    pub fn another(&self, session_id: SessionId) -> Result<Self, StoreError> {
        let folder = self.path().parent().unwrap_or(Path::new("."));
        let writer = Self::create(folder, session_id, self.scene.clone())?;
        let mirrored = self.mirrored.as_ref().map(|_| Vec::new());
        Ok(Self { mirrored, ..writer })
    }

    /// A writer for a subagent of this session; its `meta.json` is written at once.
    ///
    /// # Errors
    /// When the id cannot be a file name, is taken, or the write fails.
    pub fn subagent(&self, agent: AgentId, meta: &AgentMeta) -> Result<Self, StoreError> {
        let harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if agent.as_str().is_empty() || !agent.as_str().chars().all(harmless) {
            return Err(StoreError::NotAnAgentId(agent));
        }
        let folder = self.path().with_extension("").join("subagents");
        let path = folder.join(format!("agent-{agent}.jsonl"));
        if path.exists() {
            return Err(StoreError::InUse(agent.as_str().into()));
        }
        let meta_path = folder.join(format!("agent-{agent}.meta.json"));
        let text = serde_json::to_vec(meta)
            .map_err(|error| io_error("write", &meta_path)(error.into()))?;
        let mut file = create_private(&meta_path).map_err(io_error("create", &meta_path))?;
        file.write_all(&text).map_err(io_error("write", &meta_path))?;
        let writer = Self::new(LineFile::new(path), self.session_id.clone(), self.scene.clone());
        let mirrored = self.mirrored.as_ref().map(|_| meta.mirrored().into_iter().collect());
        Ok(Self { agent: Some(agent), mirrored, ..writer })
    }

    /// The path of the file. Hooks receive it before the file exists.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Collects written lines for [`TranscriptWriter::take_mirrored`] from now on, also of subagents. The existing
    /// lines of a copy are collected too: the host does not have them yet.
    pub fn mirror(&mut self) {
        if self.mirrored.is_none() {
            self.mirrored = Some(if self.is_copy { self.lines() } else { Vec::new() });
        }
    }

    /// The readable lines of the file.
    fn lines(&self) -> Vec<Value> {
        let bytes = ostler_files::read_bytes(self.path(), u64::MAX).unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// Takes the lines since the last call, the oldest first: as many as fit one frame. The rest follows with the next
    /// calls.
    pub fn take_mirrored(&mut self) -> Vec<Value> {
        let Some(mirrored) = &mut self.mirrored else { return Vec::new() };
        let mut n_bytes = 0;
        let fitting = mirrored.iter().take_while(|line| {
            n_bytes += line.to_string().len();
            n_bytes <= MIRRORED_AT_ONCE
        });
        let n_lines = fitting.count().max(1);
        let rest = mirrored.split_off(n_lines.min(mirrored.len()));
        std::mem::replace(mirrored, rest)
    }

    /// The session.
    pub fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// The parent of the next line.
    pub fn leaf(&self) -> Option<&Uuid> {
        self.leaf.as_ref()
    }

    /// The line of the newest prompt.
    pub(crate) fn prompt_line(&self) -> Option<&Uuid> {
        self.prompt.as_ref()
    }

    /// A response was stopped as unsafe: the next line gets the parent of that response, so that a resumed session does
    /// not contain it. Its lines stay in the file, outside the conversation.
    fn leave_out(&mut self, refused: Option<&str>) {
        if let Some((_, before)) = self.response.take_if(|(id, _)| Some(id.as_str()) == refused) {
            self.leaf = before;
        }
    }

    /// Writes a prompt as its turn begins.
    ///
    /// # Errors
    /// When the write fails; the session can continue.
    pub fn prompt(&mut self, prompt: &User, mode: &PermissionMode) -> Result<(), StoreError> {
        self.git_branch = git_branch(&self.scene.cwd);
        self.calls.clear();
        self.last_prompt = prompt.message.content.as_ref().map(|content| content.text());
        let begins = self.leaf.is_none() && self.agent.is_none();
        let mut entry = self.user(prompt);
        entry.place.permission_mode = Some(mode.clone());
        self.prompt = Some(entry.place.uuid.clone());
        self.append(&TranscriptLine::User(Box::new(entry)))?;
        if begins { self.date() } else { Ok(()) }
    }

    /// Writes the date after the first prompt. The vendor's program tells the model about a session's surroundings there, and
    /// sends the API an empty message if the file has nothing of the kind.
    fn date(&mut self) -> Result<(), StoreError> {
        let place = self.place(fresh_uuid());
        let date = place.timestamp.split('T').next().unwrap_or_default().to_owned();
        let place = serde_json::to_value(place).unwrap_or_default();
        let mut line = serde_json::json!({
            "type": "attachment", "attachment": {"type": "date", "date": date},
        });
        if let (Value::Object(fields), Value::Object(place)) = (&mut line, place) {
            fields.extend(place);
        }
        match serde_json::from_value(line) {
            Ok(line) => self.append(&line),
            Err(error) => Err(io_error("write", self.path())(error.into())),
        }
    }

    /// Writes a frame for the host, if it is part of this conversation. The line has the same uuid.
    ///
    /// # Errors
    /// When the write fails; the session can continue.
    pub fn frame(&mut self, frame: &ToHost) -> Result<(), StoreError> {
        let ours = |parent: &Option<ToolUseId>| self.agent.is_some() || parent.is_none();
        match frame {
            ToHost::Assistant(said) if ours(&said.parent_tool_use_id) => {
                self.leave_out(said.refused_message_id.as_deref());
                if let Some(id) = &said.message.id
                    && self.response.as_ref().is_none_or(|(newest, _)| newest != id)
                {
                    self.response = Some((id.clone(), self.leaf.clone()));
                }
                let entry = self.assistant(said);
                self.append(&TranscriptLine::Assistant(Box::new(entry)))
            }
            // An echo of a prompt repeats an existing line.
            ToHost::User(user)
                if ours(&user.parent_tool_use_id) && user.is_replay != Some(true) =>
            {
                self.leave_out(user.refused_message_id.as_deref());
                let entry = self.user(user);
                self.append(&TranscriptLine::User(Box::new(entry)))
            }
            ToHost::System(System::CompactBoundary(boundary)) => self.compacted(boundary),
            _ => Ok(()),
        }
    }

    /// Writes the summary that replaces the compacted conversation.
    ///
    /// # Errors
    /// When the write fails; the session can continue.
    pub fn compact_summary(&mut self, summary: &User) -> Result<(), StoreError> {
        let mut entry = self.user(summary);
        entry.place.is_meta = None;
        entry.place.is_compact_summary = Some(true);
        entry.place.is_visible_in_transcript_only = Some(true);
        self.append(&TranscriptLine::User(Box::new(entry)))
    }

    /// Writes any line. A line of the conversation becomes the parent of the next one.
    ///
    /// # Errors
    /// When the write fails; the session can continue.
    pub fn append(&mut self, line: &TranscriptLine) -> Result<(), StoreError> {
        let written = match serde_json::to_vec(line) {
            Ok(bytes) => self.file.append(&bytes),
            Err(error) => Err(error.into()),
        };
        written.map_err(io_error("write", self.path()))?;
        if let Some(mirrored) = &mut self.mirrored {
            mirrored.extend(serde_json::to_value(line));
        }
        let Some(links) = links(line) else { return Ok(()) };
        let uuid = Uuid::from(links.uuid);
        self.calls.extend(calls(line).map(|call| (call.clone(), uuid.clone())));
        self.leaf = Some(uuid);
        Ok(())
    }

    fn assistant(&mut self, said: &Assistant) -> Entry<ostler_proto::api::Message> {
        let place = build!(EntryContext {
            request_id: said.request_id.clone(),
            error: said.error.as_ref().map(|error| error.as_str().to_owned()),
            is_api_error_message: said.is_api_error_message.or(said.error.as_ref().map(|_| true)),
            api_error_status: said.api_error_status,
            api_error_type: said.api_error_type.clone(),
            ..self.place(said.uuid.clone())
        });
        Entry::new(said.message.clone(), place)
    }

    fn user(&mut self, user: &User) -> Entry<ostler_proto::message::UserContent> {
        let place = self.place(user.uuid.clone().unwrap_or_else(fresh_uuid));
        let mut entry = Entry::new(user.message.clone(), place);
        entry.place.tool_use_result.clone_from(&user.tool_use_result);
        entry.place.is_meta = user.is_synthetic.filter(|synthetic| *synthetic);
        if let Some(call) = results(&entry.message).find_map(|id| self.calls.get(id)) {
            entry.place.source_tool_assistant_uuid = Some(call.clone());
        }
        entry
    }

    fn compacted(&mut self, boundary: &CompactBoundary) -> Result<(), StoreError> {
        let metadata = &boundary.compact_metadata;
        let EntryContext {
            uuid,
            session_id,
            timestamp,
            user_type,
            entrypoint,
            cwd,
            version,
            git_branch,
            ..
        } = self.place(boundary.uuid.clone());
        let mut kept = serde_json::json!({
            "trigger": metadata.trigger, "preTokens": metadata.pre_tokens,
        });
        if let Some(post) = metadata.post_tokens {
            kept["postTokens"] = post.into();
        }
        if let Some(duration) = &metadata.duration_ms {
            kept["durationMs"] = serde_json::json!(duration);
        }
        self.append(&TranscriptLine::System(Box::new(build!(SystemEntry {
            // The conversation begins again here.
            parent_uuid: None,
            logical_parent_uuid: self.leaf.clone(),
            subtype: "compact_boundary".to_owned(),
            content: Some("Conversation compacted".to_owned()),
            level: Some("info".to_owned()),
            compact_metadata: Some(kept),
            is_sidechain: Some(self.agent.is_some()),
            is_meta: Some(false),
            uuid,
            session_id,
            timestamp,
            user_type,
            entrypoint,
            cwd,
            version,
            git_branch
        }))))
    }

    fn place(&mut self, uuid: Uuid) -> EntryContext {
        build!(EntryContext {
            parent_uuid: self.leaf.clone(),
            uuid,
            session_id: self.session_id.clone(),
            timestamp: self.clock.tick(),
            is_sidechain: Some(self.agent.is_some()),
            agent_id: self.agent.clone(),
            user_type: Some("external".to_owned()),
            entrypoint: self.scene.entrypoint.clone(),
            cwd: Some(self.scene.cwd.display().to_string()),
            version: Some(self.scene.version.clone()),
            git_branch: self.git_branch.clone()
        })
    }
}

/// Metadata of a subagent, next to its transcript.
#[derive(Clone, Debug, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentMeta {
    /// Its type, such as `general-purpose`.
    pub agent_type: String,
    /// A short description of its task.
    pub description: String,
    /// The call that started it.
    pub tool_use_id: ToolUseId,
    /// 1 for a subagent of the session itself.
    pub spawn_depth: u64,
    /// The subagent that started it, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_agent_id: Option<AgentId>,
}

impl AgentMeta {
    /// The file `meta.json` as a line for hosts that mirror the transcript, in the format of Claude Code.
    fn mirrored(&self) -> Option<Value> {
        let Ok(Value::Object(fields)) = serde_json::to_value(self) else { return None };
        let kind = [("type".to_owned(), "agent_metadata".into())];
        Some(Value::Object(kind.into_iter().chain(fields).collect()))
    }
}
