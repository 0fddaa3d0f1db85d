//! Questions of MCP servers to the user (elicitation): a form to fill in, or a URL to visit.
//!
//! A server is not the agent and not this program, so its name stands above its text, and nothing is sent or opened
//! without the user's approval.

use std::io;

use ostler::Elicited;
use ostler_proto::control::Elicitation;
use serde_json::{Map, Value};

use crate::form::{self, Field};
use crate::input::Input;
use crate::keys::Key;
use crate::reply::{answered, written};
use crate::screen::{BOLD, CYAN, DIM, Screen, YELLOW};
use crate::text::spelled;

/// What the user chose with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Accept,
    Decline,
    Cancel,
    /// Fill in the form again.
    Again,
}

/// Shows the server's question and asks the user. The end of the input cancels.
pub(crate) async fn ask(
    question: &Elicitation,
    input: &mut Input,
    screen: &mut Screen,
) -> io::Result<Elicited> {
    let name = question.display_name.as_ref().unwrap_or(&question.mcp_server_name);
    let heading = format!("The MCP server {} asks:", spelled(name));
    for line in screen.fitted(&heading, 0) {
        screen.line(&format!("{YELLOW}{BOLD}{line}{BOLD:#}{YELLOW:#}"))?;
    }
    let texts = [question.title.as_ref(), Some(&question.message), question.description.as_ref()];
    for text in texts.into_iter().flatten() {
        indented(text, screen)?;
    }
    let answer = match question.mode.as_deref() {
        Some("url") => visit(question.url.as_deref().unwrap_or_default(), input, screen).await?,
        _ => fill_in(question, input, screen).await?,
    };
    screen.remark(match &answer {
        (Choice::Accept, _) => "→ accepted",
        (Choice::Decline, _) => "→ declined",
        (Choice::Cancel | Choice::Again, _) => "→ cancelled",
    })?;
    Ok(match answer {
        (Choice::Accept, Some(content)) => Elicited::accept().with_content(content),
        (Choice::Accept, None) => Elicited::accept(),
        (Choice::Decline, _) => Elicited::decline(),
        (Choice::Cancel | Choice::Again, _) => Elicited::cancel(),
    })
}

/// The user's choice, and the values of the form.
type Answer = (Choice, Option<Value>);

/// Shows the whole URL and never opens it, so the user sees where it leads before visiting it.
async fn visit(url: &str, input: &mut Input, screen: &mut Screen) -> io::Result<Answer> {
    screen.line("  It wants you to visit this address:")?;
    indented(url, screen)?;
    let keys = [("y", "accept: I will open it in a browser"), NO, CANCEL];
    Ok((choose(&keys, input, screen).await?, None))
}

const NO: (&str, &str) = ("n", "decline");
const CANCEL: (&str, &str) = ("Esc", "cancel: do not answer");

async fn fill_in(
    question: &Elicitation,
    input: &mut Input,
    screen: &mut Screen,
) -> io::Result<Answer> {
    let fields = match form::fields(question) {
        Ok(fields) => fields,
        Err(reason) => {
            let reason = spelled(&reason);
            screen.error(&format!("This form cannot be filled in at a terminal: {reason}"))?;
            return Ok((choose(&[NO, CANCEL], input, screen).await?, None));
        }
    };
    for field in &fields {
        describe(field, screen)?;
    }
    let yes = if fields.is_empty() { "accept" } else { "fill in the form" };
    let choice = choose(&[("y", yes), NO, CANCEL], input, screen).await?;
    if choice != Choice::Accept || fields.is_empty() {
        return Ok((choice, Some(Value::Object(Map::new()))));
    }
    loop {
        let Some(content) = type_in(&fields, input, screen).await? else {
            return Ok((Choice::Cancel, None));
        };
        // With input from a pipe there is no user to review the form.
        if !input.is_terminal {
            return Ok((Choice::Accept, Some(Value::Object(content))));
        }
        for field in &fields {
            let value = content.get(&field.name).map_or("–".to_owned(), |it| field.shown(it));
            indented(&format!("{}: {value}", field.name), screen)?;
        }
        let keys = [("y", "send this"), ("e", "fill in again"), NO, CANCEL];
        match choose(&keys, input, screen).await? {
            Choice::Again => {}
            choice => return Ok((choice, Some(Value::Object(content)))),
        }
    }
}

/// Shows a field with its description and rules.
fn describe(field: &Field, screen: &mut Screen) -> io::Result<()> {
    let title = field.title.as_ref().filter(|title| **title != field.name);
    let title = title.map(|title| format!(" “{title}”")).unwrap_or_default();
    indented(&format!("{}{title} ({})", field.name, field.rules()), screen)?;
    let description = field.description.iter().map(|text| format!("  {text}"));
    let labels = field.labels().enumerate();
    let labels = labels.map(|(at, label)| format!("  {}. {label}", at + 1));
    description.chain(labels).try_for_each(|line| indented(&line, screen))
}

/// Asks for the fields one after the other; `None` if the user ends the input.
async fn type_in(
    fields: &[Field],
    input: &mut Input,
    screen: &mut Screen,
) -> io::Result<Option<Map<String, Value>>> {
    let mut content = Map::new();
    for field in fields {
        let mark = spelled(&format!("{} ({}):", field.name, field.rules()));
        loop {
            let typed = match input.is_terminal {
                true => written(&mark, input, screen).await?,
                false => answered(&mark, input, screen).await?,
            };
            let Some(typed) = typed else { return Ok(None) };
            match field.read(&typed) {
                Ok(Some(value)) => _ = content.insert(field.name.clone(), value),
                Ok(None) => {}
                Err(reason) => {
                    screen.error(&spelled(&reason))?;
                    continue;
                }
            }
            break;
        }
    }
    Ok(Some(content))
}

/// Reads one key, or one line if the input is not a terminal.
async fn choose(
    keys: &[(&'static str, &str)],
    input: &mut Input,
    screen: &mut Screen,
) -> io::Result<Choice> {
    if input.is_terminal {
        return by_key(keys, input, screen).await;
    }
    let may_accept = keys.iter().any(|(key, _)| *key == "y");
    let mark = if may_accept { "Accept? [y/n, nothing cancels]" } else { "[n, nothing cancels]" };
    let typed = answered(mark, input, screen).await?;
    Ok(match typed.as_deref().map(str::trim) {
        Some("y" | "Y" | "yes" | "Yes") if may_accept => Choice::Accept,
        Some("n" | "N" | "no" | "No") => Choice::Decline,
        _ => Choice::Cancel,
    })
}

/// Reads one key. Several keys at once are pasted text, which is not an answer.
pub(crate) async fn by_key(
    keys: &[(&'static str, &str)],
    input: &mut Input,
    screen: &mut Screen,
) -> io::Result<Choice> {
    let line = |(key, text): &(&str, &str)| format!("  {CYAN}{key:<3}{CYAN:#} {DIM}{text}{DIM:#}");
    let lines: Vec<_> = keys.iter().map(line).collect();
    let has = |wanted: &str| keys.iter().any(|(key, _)| *key == wanted);
    let mut pressed = input.keys().await?;
    match screen.is_live() {
        true => screen.draw(&lines)?,
        false => lines.iter().try_for_each(|line| screen.line(line))?,
    }
    loop {
        let Some(together) = pressed.next().await else { return Ok(Choice::Cancel) };
        match together.as_slice() {
            [Key::Letter('y' | 'Y')] if has("y") => return Ok(Choice::Accept),
            [Key::Letter('e')] if has("e") => return Ok(Choice::Again),
            [Key::Letter('n' | 'N')] => return Ok(Choice::Decline),
            [Key::Escape | Key::End] => return Ok(Choice::Cancel),
            _ => {}
        }
    }
}

/// Shows the server's text completely, without control characters, and indented so it cannot look like this program's.
fn indented(text: &str, screen: &mut Screen) -> io::Result<()> {
    for line in screen.fitted(&spelled(text), 2) {
        screen.line(&format!("  {line}"))?;
    }
    Ok(())
}
