//! Decide what the agent may do: rules for what is clear, a callback for everything else.

use ostler::{Client, Decision, PermissionRequest};

fn decide(call: PermissionRequest) -> Decision {
    println!("? {} {}", call.tool_name, call.input);
    match (call.tool_name.as_str(), call.input["command"].as_str()) {
        // Yes, and from now on without approval.
        ("Write", _) => Decision::allow().with_rules(call.suggestions()),
        // Yes, but with another command.
        ("Bash", Some("make")) => {
            Decision::allow().edit(|input| input["command"] = "echo make".into())
        }
        // No. The agent reads the reason and continues; with `.and_stop()` it stops.
        _ => Decision::deny("this folder is not for that"),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let options = ostler::Options::new()
        .cwd(folder.path())
        .allow(["Bash(touch:*)"])
        .deny(["WebFetch"])
        .on_permission(decide);
    let mut client = Client::connect(options).await?;
    for prompt in [
        "write one to a.txt",
        "write two to b.txt",
        "run `touch c.txt`",
        "run `make`",
        "run `chmod 777 a.txt`",
    ] {
        println!("> {prompt}");
        println!("{}", client.prompt(prompt).await?.result.unwrap_or_default());
    }
    client.close().await?;
    Ok(())
}
