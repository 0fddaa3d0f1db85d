//! Rewinding files.

use futures::FutureExt as _;
use ostler::proto::Uuid;
use ostler::proto::message::User;
use ostler::proto::permission::PermissionMode;
use ostler_testkit::{Script, reply, when};
use serde_json::json;

use super::super::stage::Stage;
use super::super::{Scenario, scenario};

const FIRST: &str = "11111111-1111-4111-8111-111111111111";
const SECOND: &str = "22222222-2222-4222-8222-222222222222";

fn prompt(text: &str, uuid: &str) -> User {
    User { uuid: Some(Uuid::from(uuid)), ..User::prompt(text) }
}

fn note_content(stage: &Stage, when: &str) {
    let text = std::fs::read_to_string(stage.file("note.txt"));
    stage.note(format!("{when}: {:?}", text.unwrap_or_else(|_| "not there".to_owned())));
}

pub(super) fn all() -> Vec<Scenario> {
    vec![scenario(
        "checkpoint",
        Script::new(),
        |stage| {
            async {
                // The path is only known here.
                let path = stage.folder.path().canonicalize().unwrap().join("note.txt");
                let edit = json!({"file_path": path, "old_string": "one", "new_string": "two"});
                stage.api.append(
                    Script::new()
                        .rule(
                            when().turn(0),
                            reply().tool_use(
                                "Write",
                                json!({"file_path": path, "content": "one\nmore\n"}),
                            ),
                        )
                        .rule(when().turn(1), reply().text("Wrote it."))
                        .rule(when().turn(2), reply().tool_use("Edit", edit))
                        .rule(when(), reply().text("Edited.")),
                );
                let mut options = stage.options().permission_mode(PermissionMode::AcceptEdits);
                options.session.file_checkpointing = true;
                let mut client = stage.client(options).await;
                stage.within("the write", client.prompt(prompt("Write", FIRST))).await.unwrap();
                stage.within("the edit", client.prompt(prompt("Edit", SECOND))).await.unwrap();
                note_content(stage, "changed");
                let handle = client.handle();
                let preview = handle.rewind_preview(Uuid::from(SECOND));
                let preview = stage.within("the preview", preview).await.unwrap();
                stage.note(format!(
                    "would change {} files, {:?} lines in, {:?} out",
                    preview.files_changed.map_or(0, |files| files.len()),
                    preview.insertions,
                    preview.deletions
                ));
                note_content(stage, "previewed");
                for (id, name) in [(SECOND, "second"), (FIRST, "first")] {
                    let rewound = handle.rewind_files(Uuid::from(id));
                    let rewound = stage.within("the rewind", rewound).await.unwrap();
                    assert!(rewound.can_rewind);
                    note_content(stage, &format!("before the {name}"));
                }
                let nowhere = Uuid::from("99999999-9999-4999-8999-999999999999");
                let error = stage.within("the answer", handle.rewind_files(nowhere)).await;
                stage.note(
                    error.unwrap_err().to_string().contains("No file checkpoint").to_string(),
                );
                stage.close(client).await;
            }
            .boxed()
        },
        r#"changed: "two\nmore\n"
           would change 1 files, Some(1) lines in, Some(1) out
           previewed: "two\nmore\n"
           before the second: "one\nmore\n"
           before the first: "not there"
           true"#,
    )]
}
