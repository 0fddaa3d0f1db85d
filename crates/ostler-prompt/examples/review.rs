//! A code review by an agent: a mounted folder, a tool of this program, a typed answer, limits, and live events.
//!
//! `cargo run -p ostler-prompt --example review -- src`, with a key in `ANTHROPIC_API_KEY`.

use std::time::Duration;

use ostler_prompt::{
    Adapter, Budget, ClientConfig, Deadline, HostMount, Markdown, Prompt, Session, ToolContext,
    ToolInvoked, Workspace, tool_with_context,
};
use ostler_sdk::PermissionMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The agent's answer. The model reads the comments, too.
#[derive(Deserialize, JsonSchema)]
struct Review {
    /// From 1, bad, to 10, good.
    score: u8,
    findings: Vec<Finding>,
}

#[derive(Deserialize, JsonSchema)]
struct Finding {
    file: String,
    line: u32,
    remark: String,
}

/// The parameters of the prompt.
#[derive(Serialize)]
struct Task {
    most: u8,
}

/// The arguments of the tool.
#[derive(Deserialize, JsonSchema)]
struct Owner {
    /// The file whose owner is wanted.
    file: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("missing folder; usage: review FOLDER")?;
    if std::env::var_os("ANTHROPIC_API_KEY").is_none() {
        return Err("a review needs a model: set ANTHROPIC_API_KEY".into());
    }
    // The agent works on copies: the originals stay unchanged unless the changes are applied below.
    let mount = HostMount::new(folder)
        .mount_path("project")
        .exclude_glob(["target", "node_modules", ".git"])
        .max_bytes(10_000_000);
    let workspace = Workspace::builder().mount(mount).open()?;

    let owner = |args: Owner, context: ToolContext| async move {
        match context.deadline() {
            Some(deadline) if deadline.remaining() < Duration::from_secs(5) => Err("no time left"),
            _ => Ok(format!("Ada owns {}", args.file)),
        }
    };
    let task = "Review the code in `project`, fix what is plainly wrong, and report at most ${most} findings.";
    let prompt =
        Prompt::<Review>::builder("review", "code")
            .section(
                Markdown::new("Task", "task", task)
                    .params(Task { most: 3 })
                    .tool(tool_with_context("owner", "Says who owns a file", owner)),
            )
            .section(&workspace)
            .build()?;

    let session = Session::new();
    let calls = session.bus().subscribe(|call: &ToolInvoked| println!("called {}", call.name));
    // The agent works on a copy and there is no user who could approve calls: every call may run.
    let without_approval =
        ClientConfig::default().with_permission_mode(PermissionMode::BypassPermissions);
    let response = Adapter::new(ostler::Options::new())
        .with_client(without_approval)
        .evaluate(&prompt, &session)
        .deadline(Deadline::after(Duration::from_secs(600)))
        .budget(Budget::tokens(500_000).max_usd(2.0))
        .await?;
    session.bus().settle().await;
    drop(calls);

    println!("score {}", response.output.score);
    for Finding { file, line, remark } in &response.output.findings {
        println!("{file}:{line}: {remark}");
    }
    println!("{} tokens", response.usage.total());
    // Prints the changes; `apply` would write them to the originals.
    print!("{}", workspace.changes()?.to_patch());
    Ok(())
}
