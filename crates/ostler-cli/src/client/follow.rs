//! Shows the events of a task as they happen, and asks for its approvals if a user sits at this terminal.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

use ostler_client::approval::{self, is_question, questions};
use ostler_client::items;
use serde_json::{Map, Value, json};

use super::approvals::{chosen, how_to_answer, outcome, show};
use super::reach::{Server, Trouble, described};
use super::text;
use crate::input::Input;
use crate::screen::Screen;
use crate::show::subject;
use crate::text::{clean, spelled};

/// How often to reconnect after the connection breaks.
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(500);

/// Shows events until the task is over.
pub(super) async fn follow(
    task: &str,
    server: &Server,
    screen: &mut Screen,
) -> Result<ExitCode, Trouble> {
    let is_attended = io::stdin().is_terminal() && io::stdout().is_terminal() && !server.is_json;
    let mut input = is_attended.then(Input::from_stdin);
    let mut scene = Scene { server, screen, asked: VecDeque::new(), given: Map::new(), end: None };
    let path = format!("/api/tasks/{task}/events");
    let (mut last, mut broken) = (0, 0);
    loop {
        let mut events = match server.events(&path, last).await {
            Ok(events) => events,
            // Reconnect only if the first connection succeeded.
            Err(error) if last == 0 || broken >= TRIES => return Err(error.into()),
            Err(_) => {
                broken += 1;
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        loop {
            let typed = async {
                match (&mut input, scene.asked.is_empty()) {
                    (Some(input), false) => input.line().await,
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                event = events.next() => match event {
                    Some((id, event)) => {
                        (last, broken) = (id.max(last), 0);
                        scene.happens(&event, is_attended).await?;
                    }
                    None => break,
                },
                line = typed => match line {
                    Some(line) => scene.typed(&line.text).await?,
                    // The input has ended. Other clients can still answer.
                    None => input = None,
                },
            }
            if let Some(code) = scene.end {
                return Ok(code);
            }
        }
        broken += 1;
        if broken >= TRIES {
            let text = format!("the stream broke; `ostler task log --follow {task}` resumes it");
            return Err(Trouble::Server(text));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Shows the log of a task up to now.
pub(super) async fn log(
    task: &str,
    server: &Server,
    screen: &mut Screen,
) -> Result<ExitCode, Trouble> {
    let found = server.get(&format!("/api/tasks/{task}")).await?;
    let Some(session) = found["execution"]["session"].as_str() else {
        return Err(Trouble::Server("this task was never executed".to_owned()));
    };
    let mut scene = Scene { server, screen, asked: VecDeque::new(), given: Map::new(), end: None };
    let mut after = 0;
    loop {
        let path = format!("/api/sessions/{session}/log?limit=500&after={after}");
        let page = server.get(&path).await?;
        let mut is_empty = true;
        for entry in items(&page) {
            is_empty = false;
            after = entry["seq"].as_u64().unwrap_or(u64::MAX);
            if let Some(event) = as_event(entry) {
                scene.happens(&event, false).await?;
            }
        }
        if is_empty {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Turns an entry of the session's log into an event of the task's stream.
fn as_event(entry: &Value) -> Option<Value> {
    let body = &entry["body"];
    Some(match text(&entry["kind"]) {
        "message" => {
            let message = &body["message"];
            json!({"type": "message", "messageType": message["type"], "content": message})
        }
        "approval" => json!({"type": "approval", "approval": body["approval"]}),
        "run" => {
            let run = &body["run"];
            let error = &run["outcome"]["error"];
            match text(&run["state"]) {
                "failed" | "cancelled" | "interrupted" => {
                    json!({"type": "error", "error": error["message"], "code": error["code"]})
                }
                state => json!({"type": "status", "status": state}),
            }
        }
        _ => return None,
    })
}

/// The output, and the approvals still to ask about.
struct Scene<'a> {
    server: &'a Server,
    screen: &'a mut Screen,
    /// Pending approvals for the user at this terminal; the first one is being asked.
    asked: VecDeque<Value>,
    /// Answers to the current questions so far.
    given: Map<String, Value>,
    end: Option<ExitCode>,
}

impl Scene<'_> {
    async fn happens(&mut self, event: &Value, is_attended: bool) -> Result<(), Trouble> {
        if text(&event["type"]) == "status" {
            match text(&event["status"]) {
                "completed" => self.end = Some(ExitCode::SUCCESS),
                "failed" | "cancelled" | "interrupted" => self.end = Some(ExitCode::FAILURE),
                _ => {}
            }
        }
        if self.server.is_json {
            self.screen.line(&event.to_string())?;
            return Ok(());
        }
        match text(&event["type"]) {
            "message" => self.message(text(&event["messageType"]), &event["content"])?,
            "status" if text(&event["status"]) == "queued" => self.screen.remark("queued")?,
            "status" if text(&event["status"]) == "completed" => self.screen.remark("completed")?,
            "error" => {
                let what = format!("{} ({})", text(&event["error"]), text(&event["code"]));
                self.screen.error(&what)?;
            }
            "approval" => self.approval(&event["approval"], is_attended)?,
            _ => {}
        }
        Ok(())
    }

    fn message(&mut self, kind: &str, message: &Value) -> Result<(), Trouble> {
        if kind != "assistant" {
            return Ok(());
        }
        let indent = if message["parent_tool_use_id"].is_string() { "  " } else { "" };
        for block in message["message"]["content"].as_array().into_iter().flatten() {
            match text(&block["type"]) {
                "text" if indent.is_empty() => {
                    self.screen.text(text(&block["text"]))?;
                    self.screen.end_line()?;
                }
                "tool_use" => {
                    let about = subject(&block["input"], self.screen.columns());
                    let name = clean(text(&block["name"]));
                    let line = self.screen.one_line(&format!("{indent}• {name} {about}"));
                    self.screen.line(&line)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn approval(&mut self, approval: &Value, is_attended: bool) -> Result<(), Trouble> {
        if approval["state"] != "pending" {
            let was_asked = self.asked.front().is_some_and(|it| it["id"] == approval["id"]);
            self.asked.retain(|it| it["id"] != approval["id"]);
            self.screen.remark(&format!("→ {}", outcome(approval)))?;
            if was_asked {
                self.given.clear();
                self.ask()?;
            }
            return Ok(());
        }
        if !is_attended {
            show(approval, self.screen)?;
            return Ok(self.screen.remark(&how_to_answer(approval))?);
        }
        self.asked.push_back(approval.clone());
        if self.asked.len() == 1 { self.ask() } else { Ok(()) }
    }

    /// Asks about the first pending approval.
    fn ask(&mut self) -> Result<(), Trouble> {
        let Some(approval) = self.asked.front() else { return Ok(()) };
        if !is_question(approval) {
            show(approval, self.screen)?;
            let offered = approval["rules"].as_array().is_some_and(|rules| !rules.is_empty());
            if offered {
                let (rule, folder) = (&approval["rules"][0], &approval["origin"]["folder"]);
                let granted =
                    format!("s and a grant {}; a applies in {}", text(rule), text(folder));
                self.screen.remark(&spelled(&granted))?;
            }
            let is_whole = approval["offers"][0]["wholeTool"] == true;
            if is_whole {
                self.screen.remark("this rule allows every use of the tool; s! and a! grant it")?;
            }
            let keys = match (offered, is_whole) {
                (true, false) => "y once, s session, a always",
                (true, true) => "y once, s! session, a! always",
                (false, _) => "y yes",
            };
            return Ok(self.screen.prompt(&format!("{keys}, n no, or n and a reason:"))?);
        }
        let mut open = questions(approval).skip(self.given.len());
        let Some(question) = open.next() else { return Ok(()) };
        let one = json!({"kind": "question", "input": {"questions": [question]}});
        show(&one, self.screen)?;
        Ok(self.screen.prompt("number, or your own text:")?)
    }

    async fn typed(&mut self, line: &str) -> Result<(), Trouble> {
        let Some(approval) = self.asked.front().cloned() else { return Ok(()) };
        let line = line.trim();
        if line.is_empty() {
            return self.ask();
        }
        let answer = if is_question(&approval) {
            let open = questions(&approval).nth(self.given.len());
            if let Some(question) = open {
                let said = chosen(question, line);
                self.given.insert(text(&question["question"]).to_owned(), said);
            }
            if questions(&approval).count() > self.given.len() {
                return self.ask();
            }
            json!({"answers": std::mem::take(&mut self.given)})
        } else {
            decision(line)
        };
        // The events report the decision.
        if let Err(error) = approval::answer(self.server, &approval, answer).await {
            self.screen.error(&described(&error))?;
        }
        Ok(())
    }
}

/// The decision in a typed line; only a clear yes allows.
fn decision(line: &str) -> Value {
    match line {
        "y" | "yes" => json!({"approved": true}),
        "s" => json!({"approved": true, "scope": "session"}),
        "a" => json!({"approved": true, "scope": "always"}),
        "s!" => json!({"approved": true, "scope": "session", "wholeTool": true}),
        "a!" => json!({"approved": true, "scope": "always", "wholeTool": true}),
        "n" | "no" => json!({"approved": false}),
        note => json!({"approved": false, "note": note.strip_prefix("n ").unwrap_or(note)}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_a_clear_yes_is_a_no() {
        for (line, expected) in [
            ("y", json!({"approved": true})),
            ("s", json!({"approved": true, "scope": "session"})),
            ("a", json!({"approved": true, "scope": "always"})),
            ("a!", json!({"approved": true, "scope": "always", "wholeTool": true})),
            ("n", json!({"approved": false})),
            ("n use a folder", json!({"approved": false, "note": "use a folder"})),
            ("Yes please", json!({"approved": false, "note": "Yes please"})),
            ("ya", json!({"approved": false, "note": "ya"})),
        ] {
            assert_eq!(decision(line), expected, "{line}");
        }
    }
}
