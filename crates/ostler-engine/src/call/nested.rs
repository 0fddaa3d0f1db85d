//! Instructions that the model reads after it has read a file: those of the file's folder, and rules for its path.

use ostler_proto::hook::HookEvent;
use serde_json::json;

use super::CallResult;
use crate::context::memory::MemoryFile;
use crate::disk::on_disk;
use crate::drive::TurnContext;
use crate::hooks::Event;
use crate::tool::Effect;

/// The tool after whose calls the model reads them.
const READ: &str = "Read";

/// The instructions that belong to a file that a call has read, each once in a conversation.
pub(super) async fn about(
    context: &TurnContext,
    tool: &str,
    effect: &Effect,
    result: &CallResult,
) -> Vec<String> {
    let Effect::Read(path) = effect else { return Vec::new() };
    if tool != READ || result.block.is_error == Some(true) {
        return Vec::new();
    }
    let (nested, path) = (context.nested.clone(), path.clone());
    let found = on_disk({
        let path = path.clone();
        move || nested.about(&path)
    })
    .await;
    let mut texts = Vec::new();
    for (MemoryFile { path: file, text }, reason) in found {
        if context.hooks.any_for(&HookEvent::InstructionsLoaded) {
            let fields = json!({
                "file_path": file, "memory_type": "Project", "load_reason": reason.word(),
                "trigger_file_path": path,
            });
            context.hooks.run(Event::new(HookEvent::InstructionsLoaded, fields)).await;
        }
        texts.push(format!(
            "<system-reminder>\nInstructions from {}:\n\n{text}\n</system-reminder>",
            file.display()
        ));
    }
    texts
}
