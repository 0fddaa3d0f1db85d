//! What the user sees. The only place that writes to standard output.
//!
//! On a terminal the last lines may be *live*: drawn again and again (a spinner, a menu), and gone before anything
//! else is written. Elsewhere there are no colours and no cursor movements.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use crate::editor::Picture;
use crate::text::{clean, clipped, width, wrapped};
use crate::tty;
use crate::wrap::Wrap;

pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

/// How wide lines are where nobody says.
const USUAL_COLUMNS: usize = 160;
/// How many lines there are where nobody says.
const USUAL_ROWS: usize = 24;
/// A prompt of more lines is not shown whole once it is said.
const MOST_SAID: usize = 20;
/// Narrower than this, nothing can be laid out.
const LEAST_COLUMNS: usize = 16;

/// The terminal, or whatever stands in for it. Colours appear only where they can be shown.
pub(crate) struct Screen {
    out: AutoStream<io::Stdout>,
    is_terminal: bool,
    /// Lines may be drawn again.
    is_live: bool,
    /// Something was written and the line is not ended.
    in_line: bool,
    /// How wide the live lines are.
    drawn: Vec<usize>,
    /// How many of them are below the cursor.
    below: usize,
    wrap: Wrap,
}

/// A terminal that can do nothing gets plain lines, also where a CI job would get colours.
fn choice(usual: ColorChoice) -> ColorChoice {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if is_dumb { ColorChoice::Never } else { usual }
}

impl Screen {
    pub(crate) fn new() -> Self {
        let choice = choice(AutoStream::choice(&io::stdout()));
        let is_terminal = io::stdout().is_terminal();
        Self {
            out: AutoStream::new(io::stdout(), choice),
            is_terminal,
            is_live: is_terminal && choice != ColorChoice::Never,
            in_line: false,
            drawn: Vec::new(),
            below: 0,
            wrap: Wrap::default(),
        }
    }

    /// Whether lines can be drawn again.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Whether a line of text is being written.
    pub(crate) fn is_in_line(&self) -> bool {
        self.in_line
    }

    /// How many columns a line may have. One is left free: some terminals break a line that is just full.
    pub(crate) fn columns(&self) -> usize {
        let columns = if self.is_terminal { tty::columns() } else { None };
        columns.unwrap_or(USUAL_COLUMNS).saturating_sub(1).max(LEAST_COLUMNS)
    }

    /// How many lines can be seen at once.
    pub(crate) fn rows(&self) -> usize {
        tty::rows().unwrap_or(USUAL_ROWS)
    }

    pub(crate) fn welcome(
        &mut self,
        model: &str,
        folder: &str,
        remark: Option<&str>,
    ) -> io::Result<()> {
        let name = format!("ostler {}", env!("CARGO_PKG_VERSION"));
        let rest = clipped(
            &clean(&format!(" · {model} · {folder}")),
            self.columns().saturating_sub(width(&name)),
        );
        self.line(&format!("{BOLD}{name}{BOLD:#}{rest}"))?;
        remark.map_or(Ok(()), |remark| self.remark(remark))
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
        self.erase()?;
        let mut piece = clean(piece);
        if self.is_terminal {
            piece = self.wrap.push(&piece, self.columns());
        }
        self.out.write_all(piece.as_bytes())?;
        if let Some(last) = piece.chars().last() {
            self.in_line = last != '\n';
        }
        self.out.flush()
    }

    /// A remark of the program itself.
    pub(crate) fn remark(&mut self, text: &str) -> io::Result<()> {
        self.paragraph(DIM, text)
    }

    /// Something went wrong in the conversation.
    pub(crate) fn error(&mut self, text: &str) -> io::Result<()> {
        self.paragraph(RED, text)
    }

    fn paragraph(&mut self, style: Style, text: &str) -> io::Result<()> {
        for line in self.fitted(&clean(text), 0) {
            self.line(&format!("{style}{line}{style:#}"))?;
        }
        Ok(())
    }

    /// The lines of a text that is to be indented: broken between words on a terminal, as they are elsewhere.
    pub(crate) fn fitted(&self, text: &str, indent: usize) -> Vec<String> {
        if !self.is_terminal {
            return text.lines().map(str::to_owned).collect();
        }
        let columns = self.columns().saturating_sub(indent);
        text.lines().flat_map(|line| wrapped(line, columns)).collect()
    }

    /// A line that is not longer than the window. Elsewhere it is whole.
    pub(crate) fn one_line(&self, text: &str) -> String {
        if self.is_terminal { clipped(text, self.columns()) } else { text.to_owned() }
    }

    /// A remark for people only: a program that reads our output gets none.
    pub(crate) fn hint(&mut self, text: &str) -> io::Result<()> {
        if self.is_terminal { self.remark(text) } else { Ok(()) }
    }

    /// A text of the program itself.
    pub(crate) fn lines(&mut self, text: &str) -> io::Result<()> {
        self.fitted(text, 0).iter().try_for_each(|line| self.line(line))
    }

    /// A line the caller has styled.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        writeln!(self.out, "{text}")
    }

    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        self.erase()?;
        let word = self.wrap.finish(self.columns());
        self.wrap.reset();
        self.out.write_all(word.as_bytes())?;
        if std::mem::take(&mut self.in_line) || !word.is_empty() {
            writeln!(self.out)?;
        }
        self.out.flush()
    }

    /// Draws the live lines, in place of those that were there. Each must fit the width. Nothing where lines cannot
    /// be drawn again.
    pub(crate) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        if !self.is_live {
            return Ok(());
        }
        if self.in_line {
            self.end_line()?;
        }
        self.clear_drawn()?;
        write!(self.out, "{}", lines.join("\n"))?;
        self.drawn = lines.iter().map(|line| plain_width(line)).collect();
        self.out.flush()
    }

    /// Draws what is being written, and puts the cursor where the next letter goes.
    pub(crate) fn draw_prompt(&mut self, mark: &str, picture: &Picture) -> io::Result<()> {
        let mut mark = format!("{CYAN}{mark}{CYAN:#} ");
        let lines = picture.lines.iter();
        let lines: Vec<_> = lines
            .map(|line| format!("{}{line}", std::mem::replace(&mut mark, "  ".to_owned())))
            .collect();
        self.draw(&lines)?;
        self.below = lines.len().saturating_sub(picture.row + 1);
        if self.below > 0 {
            write!(self.out, "\x1b[{}A", self.below)?;
        }
        write!(self.out, "\r\x1b[{}C", picture.column)?;
        self.out.flush()
    }

    /// What was written stays on the screen.
    pub(crate) fn said(&mut self, mark: &str, text: &str) -> io::Result<()> {
        let text = clean(text);
        let n_lines = text.lines().count();
        let mut lines = text.lines().take(MOST_SAID);
        self.line(&format!("{CYAN}{mark}{CYAN:#} {}", lines.next().unwrap_or_default()))?;
        lines.try_for_each(|line| self.line(&format!("  {line}")))?;
        match n_lines.saturating_sub(MOST_SAID) {
            0 => Ok(()),
            n => self.remark(&format!("  … {n} more lines")),
        }
    }

    /// Empties the screen.
    pub(crate) fn wipe(&mut self) -> io::Result<()> {
        self.erase()?;
        write!(self.out, "\x1b[H\x1b[2J")?;
        self.out.flush()
    }

    /// Somebody else has written to the terminal: the live lines are not where they were.
    pub(crate) fn forget_drawn(&mut self) {
        self.drawn.clear();
        self.below = 0;
    }

    /// Has the terminal mark what is pasted, until what this gives is dropped.
    pub(crate) fn take_pastes(&mut self) -> io::Result<Pastes> {
        write!(self.out, "\x1b[?2004h")?;
        self.out.flush()?;
        Ok(Pastes)
    }

    /// Takes the live lines away.
    pub(crate) fn erase(&mut self) -> io::Result<()> {
        if self.drawn.is_empty() {
            return Ok(());
        }
        self.clear_drawn()?;
        self.out.flush()
    }

    /// Empties the live lines, which in a window made narrower may be more than were drawn, and goes to the first.
    ///
    /// Line by line: some terminals keep what is cleared by the screen among the lines that have scrolled away.
    fn clear_drawn(&mut self) -> io::Result<()> {
        let columns = tty::columns().unwrap_or(USUAL_COLUMNS);
        let rows: usize = self.drawn.iter().map(|width| width.div_ceil(columns).max(1)).sum();
        self.drawn.clear();
        match std::mem::take(&mut self.below) {
            0 => {}
            n => write!(self.out, "\x1b[{n}B")?,
        }
        for row in 0..rows {
            let up = if row > 0 { "\x1b[A" } else { "" };
            write!(self.out, "{up}\r\x1b[K")?;
        }
        Ok(())
    }

    /// A failure of the program, on standard error.
    pub(crate) fn complain(&mut self, text: &str) {
        let _ = self.end_line();
        let mut stderr = AutoStream::new(io::stderr(), choice(ColorChoice::Auto));
        let _ = writeln!(stderr, "{RED}ostler:{RED:#} {}", clean(text));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing half-drawn is left behind, however the program ends.
        let _ = self.erase();
    }
}

/// Pastes are marked while this is there.
#[must_use]
pub(crate) struct Pastes;

impl Drop for Pastes {
    fn drop(&mut self) {
        let mut out = io::stdout();
        // A terminal that is gone marks nothing.
        let _ = out.write_all(b"\x1b[?2004l").and_then(|()| out.flush());
    }
}

fn plain_width(line: &str) -> usize {
    width(&anstream::adapter::strip_str(line).to_string())
}
