//! Hooks: inspect every call before it runs, and every result. The type of the closure's argument names the event.

use ostler::hook::{HookOutput, PostToolUseInput, PreToolUseInput};
use ostler::{Client, Hook};

#[tokio::main]
async fn main() -> Result<(), ostler::Error> {
    let guard = Hook::new(|call: PreToolUseInput, _| match call.tool_input["command"].as_str() {
        Some(command) if command.contains("secret") => {
            HookOutput::deny("secrets stay where they are")
        }
        _ => HookOutput::none(),
    });
    let log = Hook::new(|call: PostToolUseInput, _| {
        println!("log: {} {}", call.tool_name, call.tool_input);
    });
    let options =
        ostler::Options::new().allow(["Bash(echo:*)"]).hook(guard.matching("Bash")).hook(log);

    let mut client = Client::connect(options).await?;
    for prompt in ["run `echo hello`", "run `echo secret`"] {
        println!("> {prompt}");
        println!("{}", client.prompt(prompt).await?.result.unwrap_or_default());
    }
    client.close().await
}
