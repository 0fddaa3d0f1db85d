//! What the user sees. The only place that writes to standard output.

use std::io::{self, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use ostler_proto::api::{Content, ToolResultBlock, ToolUseBlock};
use serde_json::Value;

/// How much of a tool's output is shown.
const SHOWN_LINES: usize = 8;
const SHOWN_COLUMNS: usize = 160;

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();
const RED: Style = AnsiColor::Red.on_default();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// The terminal, or whatever stands in for it. Colours appear only where they can be shown.
pub(crate) struct Screen {
    out: AutoStream<io::Stdout>,
    /// Something was written and the line is not ended.
    in_line: bool,
}

impl Screen {
    pub(crate) fn new() -> Self {
        let choice = AutoStream::choice(&io::stdout());
        Self { out: AutoStream::new(io::stdout(), choice), in_line: false }
    }

    pub(crate) fn welcome(
        &mut self,
        model: &str,
        folder: &str,
        remark: Option<&str>,
    ) -> io::Result<()> {
        self.line(&format!(
            "{BOLD}ostler {}{BOLD:#} · {model} · {folder}",
            env!("CARGO_PKG_VERSION")
        ))?;
        match remark {
            Some(remark) => self.line(&format!("{DIM}{}{DIM:#}", clean(remark))),
            None => Ok(()),
        }
    }

    /// Waits for the user to type.
    pub(crate) fn prompt(&mut self, mark: &str) -> io::Result<()> {
        self.end_line()?;
        write!(self.out, "{CYAN}{mark}{CYAN:#} ")?;
        self.out.flush()
    }

    /// After a prompt whose answer came from a pipe, nobody has ended the line.
    pub(crate) fn echo(&mut self, answer: &str) -> io::Result<()> {
        self.line(&clean(answer))
    }

    /// A piece of the model's text.
    pub(crate) fn text(&mut self, piece: &str) -> io::Result<()> {
        let piece = clean(piece);
        self.out.write_all(piece.as_bytes())?;
        if let Some(last) = piece.chars().last() {
            self.in_line = last != '\n';
        }
        self.out.flush()
    }

    /// A tool is called.
    pub(crate) fn call(&mut self, call: &ToolUseBlock, depth: usize) -> io::Result<()> {
        let indent = "  ".repeat(depth);
        self.line(&format!(
            "{indent}{CYAN}•{CYAN:#} {BOLD}{}{BOLD:#} {}",
            clean(&call.name),
            subject(&call.input)
        ))
    }

    /// What a tool answered, shortened.
    pub(crate) fn result(&mut self, result: &ToolResultBlock, depth: usize) -> io::Result<()> {
        let text = result.content.as_ref().map(Content::text).unwrap_or_default();
        let style = if result.is_error == Some(true) { RED } else { DIM };
        let indent = "  ".repeat(depth + 1);
        let lines: Vec<_> = text.lines().collect();
        for line in lines.iter().take(SHOWN_LINES) {
            self.line(&format!("{indent}{style}{}{style:#}", clipped(line)))?;
        }
        match lines.len().saturating_sub(SHOWN_LINES) {
            0 => Ok(()),
            more => self.line(&format!("{indent}{DIM}… {more} more lines{DIM:#}")),
        }
    }

    /// A remark of the program itself.
    pub(crate) fn remark(&mut self, text: &str) -> io::Result<()> {
        self.line(&format!("{DIM}{}{DIM:#}", clean(text)))
    }

    /// Something went wrong in the conversation.
    pub(crate) fn error(&mut self, text: &str) -> io::Result<()> {
        self.line(&format!("{RED}{}{RED:#}", clean(text)))
    }

    /// A line the caller has styled.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        writeln!(self.out, "{text}")
    }

    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.in_line) {
            writeln!(self.out)?;
        }
        self.out.flush()
    }

    /// A failure of the program, on standard error.
    pub(crate) fn complain(&mut self, text: &str) {
        let _ = self.end_line();
        let mut stderr = AutoStream::new(io::stderr(), ColorChoice::Auto);
        let _ = writeln!(stderr, "{RED}ostler:{RED:#} {}", clean(text));
    }
}

/// What a call is about: the argument a reader would look for first.
pub(crate) fn subject(input: &Value) -> String {
    let first = ["command", "file_path", "pattern", "description", "prompt", "url"];
    let known = first.iter().find_map(|name| input.get(name)?.as_str());
    match known {
        Some(text) => clipped(text.lines().next().unwrap_or_default()),
        None if input.get("questions").is_some() => String::new(),
        None => clipped(&input.to_string()),
    }
}

fn clipped(line: &str) -> String {
    let line = clean(line);
    if line.chars().count() <= SHOWN_COLUMNS {
        return line;
    }
    let kept: String = line.chars().take(SHOWN_COLUMNS).collect();
    format!("{kept}…")
}

/// Takes out control characters, so that nothing a model or a file says can drive the terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars().filter(|letter| matches!(letter, '\n' | '\t') || !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_subject_of_a_call_is_what_one_looks_for() {
        assert_eq!(subject(&json!({"description": "d", "command": "ls\nrm"})), "ls");
        assert_eq!(subject(&json!({"file_path": "a"})), "a");
        assert_eq!(subject(&json!({"x": 1})), r#"{"x":1}"#);
        assert_eq!(subject(&json!({"questions": []})), "");
    }

    #[test]
    fn escape_sequences_never_reach_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\r\u{7}\tc\n"), "a[2Jb\tc\n");
        assert!(clipped(&"é".repeat(500)).chars().count() == SHOWN_COLUMNS + 1);
    }
}
