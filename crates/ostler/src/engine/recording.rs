//! Record and replay: sets up a recording from the command line, the options and the environment.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use ostler_engine::record::{
    Player, Recorder, Recording, RecordingError, RecordingRedactor, ReplayOptions,
};
use ostler_engine::settings::Settings;
use ostler_proto::launch::{RecordingChoice, UnknownKeyword};

use super::pick::{self, SelectedModel};
use super::{StartContext, StartError, credentials};

impl From<RecordingError> for StartError {
    fn from(error: RecordingError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// What to record or replay. The environment counts if the launch names no recording: a program that starts this one
/// cannot always add arguments.
///
/// # Errors
/// When both a recording and a replay are requested.
pub(super) fn chosen(context: &StartContext) -> Result<RecordingChoice, StartError> {
    let given = &context.launch.tape;
    let mut choice = given.clone();
    if given.record.is_none() && given.replay.is_none() {
        choice.record = context.var("OSTLER_RECORD");
        choice.replay = context.var("OSTLER_REPLAY");
    }
    if choice.record.is_some() && choice.replay.is_some() {
        return Err(StartError::Refused(
            "a run is recorded or replayed, not both: leave out one of --record and --replay, or of \
             OSTLER_RECORD and OSTLER_REPLAY"
                .to_owned(),
        ));
    }
    Ok(choice)
}

/// The same model, recorded.
pub(super) fn recorded(
    context: &StartContext,
    settings: &Settings,
    picked: SelectedModel,
    path: &str,
    secrets: &[(String, String)],
) -> Result<SelectedModel, StartError> {
    let mut redactor = redactor(context, settings);
    for (name, value) in secrets {
        match name.as_str() {
            pick::KEY => redactor.add_secret(name, value),
            // Most headers are not secrets; the redactor decides by the name.
            _ => redactor.add_variable(name, value),
        }
    }
    let recorder = Recorder::new(Path::new(path), redactor, picked.model.name())?;
    Ok(SelectedModel {
        model: recorder.model(picked.model),
        remark: picked.remark,
        account: picked.account,
        recording: Some(Recording::Record(recorder)),
    })
}

/// The model that answers from a recording. It needs no key.
pub(super) fn replayed(
    context: &StartContext,
    settings: &Settings,
    choice: &RecordingChoice,
    path: &str,
) -> Result<SelectedModel, StartError> {
    let player =
        Player::new(Path::new(path), redactor(context, settings), options(context, choice)?)?;
    let wanted = context.launch.model.name.clone().filter(|name| !name.is_empty());
    let model = player.model(&wanted.unwrap_or_else(|| player.recorded_model()));
    let remark = Some("a recording answers in the model's place");
    let account = credentials::no_account();
    Ok(SelectedModel { model, remark, account, recording: Some(Recording::Replay(player)) })
}

fn options(context: &StartContext, choice: &RecordingChoice) -> Result<ReplayOptions, StartError> {
    Ok(ReplayOptions {
        tools: or_var(context, choice.replay_tools, "tools", "OSTLER_REPLAY_TOOLS")?,
        matching: or_var(context, choice.replay_match, "match", "OSTLER_REPLAY_MATCH")?,
        timing: or_var(context, choice.replay_timing, "timing", "OSTLER_REPLAY_TIMING")?,
    })
}

/// The value of an option, or else that of its variable.
fn or_var<T>(
    context: &StartContext,
    given: Option<T>,
    option: &str,
    variable: &str,
) -> Result<T, StartError>
where
    T: Default + FromStr<Err = UnknownKeyword>,
{
    let unknown = |UnknownKeyword { word, known, .. }| {
        StartError::Refused(format!("--replay-{option} cannot be {word}; use {known}"))
    };
    match (given, context.var(variable)) {
        (Some(value), _) => Ok(value),
        (None, Some(word)) => word.parse().map_err(unknown),
        (None, None) => Ok(T::default()),
    }
}

/// Replaces folders, and everything that may be a secret, by names in recordings.
fn redactor(context: &StartContext, settings: &Settings) -> RecordingRedactor {
    let home = context.var("HOME").map(PathBuf::from);
    let temporary = context.var("TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let mut redactor = RecordingRedactor::new(&context.cwd, home.as_deref(), &temporary);
    // A value that is not UTF-8 cannot occur in a text.
    let ours = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in ours.chain(context.env.variables.keys().cloned()) {
        if let Some(value) = context.var(&name) {
            redactor.add_variable(&name, &value);
        }
    }
    for (name, value) in &settings.env {
        redactor.add_variable(name, value);
    }
    redactor
}
