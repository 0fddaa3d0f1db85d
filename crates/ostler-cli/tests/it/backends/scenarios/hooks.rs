//! Hooks of the host.

use futures::FutureExt as _;
use ostler::hook::{
    HookEvent, HookInput, HookOutput, PostToolUseInput, PreToolUseInput, StopInput,
    UserPromptSubmitInput,
};
use ostler::{Decision, Hook};
use ostler_testkit::reply;
use std::time::Duration;

use super::super::{Scenario, scenario};
use super::{deciding, replies, touch_script};

pub(super) fn all() -> Vec<Scenario> {
    vec![
        scenario(
            "hooks",
            touch_script(),
            |stage| {
                async {
                    let mut options = deciding(stage, Decision::allow());
                    let events = [
                        HookEvent::UserPromptSubmit,
                        HookEvent::PreToolUse,
                        HookEvent::PostToolUse,
                        HookEvent::Stop,
                    ];
                    for event in events {
                        let log = stage.asked.clone();
                        options = options.hook(Hook::on(event, move |input: HookInput, _| {
                            log.add(input.event().to_string());
                            async { HookOutput::none() }
                        }));
                    }
                    stage.query("Run it", options).await;
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool ok
               text Done.
               result success "Done."
               * UserPromptSubmit
               * PreToolUse
               * may Bash?
               * PostToolUse
               * Stop"#,
        ),
        scenario(
            "hook-deny",
            touch_script(),
            |stage| {
                async {
                    let hook =
                        Hook::new(|_: PreToolUseInput, _| async { HookOutput::deny("not this") });
                    stage.query("Run it", deciding(stage, Decision::allow()).hook(hook)).await;
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool failed
               text Done.
               result success "Done." denied=1
               made.txt is not there"#,
        ),
        scenario(
            "hook-allow",
            touch_script(),
            |stage| {
                async {
                    let hook = Hook::new(|_: PreToolUseInput, _| async { HookOutput::allow() })
                        .matching("Bash");
                    stage.query("Run it", deciding(stage, Decision::deny("no")).hook(hook)).await;
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool ok
               text Done.
               result success "Done."
               made.txt is there"#,
        ),
        scenario(
            "hook-ask",
            touch_script(),
            |stage| {
                async {
                    let hook =
                        Hook::new(|_: PreToolUseInput, _| async { HookOutput::ask("sure?") });
                    let options = deciding(stage, Decision::allow()).allow(["Bash"]).hook(hook);
                    stage.query("Run it", options).await;
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool ok
               text Done.
               result success "Done."
               * may Bash?"#,
        ),
        scenario(
            "hook-other-tool",
            touch_script(),
            |stage| {
                async {
                    let hook =
                        Hook::new(|_: PreToolUseInput, _| async { HookOutput::deny("not this") })
                            .matching("Write|Edit");
                    stage.query("Run it", deciding(stage, Decision::allow()).hook(hook)).await;
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool ok
               text Done.
               result success "Done."
               * may Bash?"#,
        ),
        scenario(
            "hook-context",
            replies(vec![reply().text("Hello.")]),
            |stage| {
                async {
                    let hook = Hook::new(|_: UserPromptSubmitInput, _| async {
                        HookOutput::context(&HookEvent::UserPromptSubmit, "the moon is full")
                            .unwrap()
                    });
                    stage.query("Say hello", stage.options().hook(hook)).await;
                    let requests = stage.requests();
                    let heard = requests[0].body.to_string().contains("the moon is full");
                    stage.note(format!("the model heard the context: {heard}"));
                }
                .boxed()
            },
            r#"init
               text Hello.
               result success "Hello."
               the model heard the context: true"#,
        ),
        scenario(
            "hook-stop-block",
            replies(vec![reply().text("Done."), reply().text("Really done.")]),
            |stage| {
                async {
                    let hook = Hook::new(|stop: StopInput, _| async move {
                        if stop.stop_hook_active {
                            HookOutput::none()
                        } else {
                            HookOutput::block("go on")
                        }
                    });
                    stage.query("Do it", stage.options().hook(hook)).await;
                }
                .boxed()
            },
            r#"init
               text Done.
               note
               text Really done.
               result success "Really done.""#,
        ),
        scenario(
            "hook-prompt-block",
            replies(vec![reply().text("Never.")]),
            |stage| {
                async {
                    let hook = Hook::new(|_: UserPromptSubmitInput, _| async {
                        HookOutput::block("not this prompt")
                    });
                    stage.query("Do it", stage.options().hook(hook)).await;
                    stage.note(format!("{} requests", stage.requests().len()));
                }
                .boxed()
            },
            r#"init
               result success "UserPromptSubmit operation blocked by hook:\nnot this prompt\n\nOriginal prompt: Do it"
               0 requests"#,
        ),
        scenario(
            "hook-continue-false",
            touch_script(),
            |stage| {
                async {
                    let hook =
                        Hook::new(|_: PostToolUseInput, _| async { HookOutput::stop("enough") });
                    stage.query("Run it", deciding(stage, Decision::allow()).hook(hook)).await;
                    stage.note(format!("{} requests", stage.requests().len()));
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool ok
               result success ""
               1 requests
               * may Bash?"#,
        ),
        scenario(
            "hook-throw",
            touch_script(),
            |stage| {
                async {
                    let hook = Hook::new(|call: PreToolUseInput, _| async move {
                        let panics = call.tool_name == "Bash";
                        assert!(!panics, "this hook panics on purpose");
                        HookOutput::none()
                    });
                    stage.query("Run it", deciding(stage, Decision::allow()).hook(hook)).await;
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool failed
               text Done.
               result success "Done." denied=1
               made.txt is not there"#,
        ),
        scenario(
            "hook-timeout",
            touch_script(),
            |stage| {
                async {
                    let hook =
                        Hook::new(|_: PreToolUseInput, _| futures::future::pending::<HookOutput>())
                            .timeout(Duration::from_secs(1));
                    stage.query("Run it", deciding(stage, Decision::allow()).hook(hook)).await;
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool failed
               text Done.
               result success "Done." denied=1
               made.txt is not there"#,
        ),
    ]
}
