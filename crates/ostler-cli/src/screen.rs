//! The screen for the user. The only module that writes to standard output for people.
//!
//! On a terminal the last lines may be *live*: they are redrawn (a spinner, a menu), and erased before anything else is
//! written. Elsewhere there are no colours and no cursor movements.

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

/// Line width if it is not known.
const USUAL_COLUMNS: usize = 160;
/// Number of lines if it is not known.
const USUAL_ROWS: usize = 24;
/// A sent prompt with more lines than this is shortened on the screen.
const MOST_SAID: usize = 20;
/// A narrower window counts as this wide.
const LEAST_COLUMNS: usize = 16;

/// The terminal, or the pipe in its place. Colours appear only on terminals that support them.
pub(crate) struct Screen {
    out: AutoStream<io::Stdout>,
    is_terminal: bool,
    /// Whether lines can be redrawn.
    is_live: bool,
    /// Text was written and its line is not ended.
    in_line: bool,
    /// The width of each live line.
    drawn: Vec<usize>,
    /// How many live lines are below the cursor.
    below: usize,
    wrap: Wrap,
}

/// A dumb terminal gets plain lines, even where a CI job would get colours.
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

    /// Whether lines can be redrawn.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Whether a line of text is being written.
    pub(crate) fn is_in_line(&self) -> bool {
        self.in_line
    }

    /// The width of a line. One column stays free, because some terminals break a line that is exactly full.
    pub(crate) fn columns(&self) -> usize {
        let columns = if self.is_terminal { tty::columns() } else { None };
        columns.unwrap_or(USUAL_COLUMNS).saturating_sub(1).max(LEAST_COLUMNS)
    }

    /// The height of the window, in lines.
    pub(crate) fn rows(&self) -> usize {
        tty::rows().unwrap_or(USUAL_ROWS)
    }

    pub(crate) fn welcome(&mut self, model: &str, folder: &str) -> io::Result<()> {
        let name = format!("ostler {}", env!("CARGO_PKG_VERSION"));
        let rest = clipped(
            &clean(&format!(" · {model} · {folder}")),
            self.columns().saturating_sub(width(&name)),
        );
        self.line(&format!("{BOLD}{name}{BOLD:#}{rest}"))
    }

    /// Writes something that the user must not overlook.
    pub(crate) fn banner(&mut self, text: &str) -> io::Result<()> {
        self.paragraph(YELLOW, text)
    }

    /// Shows a mark at which the user types.
    pub(crate) fn prompt(&mut self, mark: &str) -> io::Result<()> {
        self.end_line()?;
        write!(self.out, "{CYAN}{mark}{CYAN:#} ")?;
        self.out.flush()
    }

    /// Shows the answer after a prompt. Input from a pipe does not end the line as a terminal does.
    pub(crate) fn echo(&mut self, answer: &str) -> io::Result<()> {
        self.line(&clean(answer))
    }

    /// Writes a part of the model's text.
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

    /// Writes a remark of the program.
    pub(crate) fn remark(&mut self, text: &str) -> io::Result<()> {
        self.paragraph(DIM, text)
    }

    /// Writes an error of the conversation.
    pub(crate) fn error(&mut self, text: &str) -> io::Result<()> {
        self.paragraph(RED, text)
    }

    fn paragraph(&mut self, style: Style, text: &str) -> io::Result<()> {
        for line in self.fitted(&clean(text), 0) {
            self.line(&format!("{style}{line}{style:#}"))?;
        }
        Ok(())
    }

    /// The lines of a text that will be indented: wrapped on a terminal, unchanged elsewhere.
    pub(crate) fn fitted(&self, text: &str, indent: usize) -> Vec<String> {
        if !self.is_terminal {
            return text.lines().map(str::to_owned).collect();
        }
        let columns = self.columns().saturating_sub(indent);
        text.lines().flat_map(|line| wrapped(line, columns)).collect()
    }

    /// The text cut to one line of the window. Uncut if this is not a terminal.
    pub(crate) fn one_line(&self, text: &str) -> String {
        if self.is_terminal { clipped(text, self.columns()) } else { text.to_owned() }
    }

    /// Writes a remark for people; not written if a program reads the output.
    pub(crate) fn hint(&mut self, text: &str) -> io::Result<()> {
        if self.is_terminal { self.remark(text) } else { Ok(()) }
    }

    /// Writes a text of the program.
    pub(crate) fn lines(&mut self, text: &str) -> io::Result<()> {
        self.fitted(text, 0).iter().try_for_each(|line| self.line(line))
    }

    /// Writes a line that the caller has styled.
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

    /// Draws the live lines in place of the previous ones. Each must fit the width. Does nothing where lines cannot be
    /// redrawn.
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

    /// Draws the text being written, and puts the cursor where the next character goes.
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

    /// Leaves a sent prompt on the screen.
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

    /// Clears the screen.
    pub(crate) fn wipe(&mut self) -> io::Result<()> {
        self.erase()?;
        write!(self.out, "\x1b[H\x1b[2J")?;
        self.out.flush()
    }

    /// Another program has written to the terminal, so the live lines are not where they were.
    pub(crate) fn forget_drawn(&mut self) {
        self.drawn.clear();
        self.below = 0;
    }

    /// Has the terminal mark pasted text until the returned guard is dropped.
    pub(crate) fn take_pastes(&mut self) -> io::Result<Pastes> {
        write!(self.out, "\x1b[?2004h")?;
        self.out.flush()?;
        Ok(Pastes)
    }

    /// Erases the live lines.
    pub(crate) fn erase(&mut self) -> io::Result<()> {
        if self.drawn.is_empty() {
            return Ok(());
        }
        self.clear_drawn()?;
        self.out.flush()
    }

    /// Clears the live lines and moves to the first one. In a window that became narrower there may be more lines than
    /// were drawn.
    ///
    /// Clears line by line, because some terminals move text that is cleared as a screen into the scrollback.
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

    /// Reports a failure of the program on standard error.
    pub(crate) fn complain(&mut self, text: &str) {
        let _ = self.end_line();
        let mut stderr = AutoStream::new(io::stderr(), choice(ColorChoice::Auto));
        let _ = writeln!(stderr, "{RED}ostler:{RED:#} {}", clean(text));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // However the program ends, no live lines are left on the screen.
        let _ = self.erase();
    }
}

/// Pasted text is marked until this is dropped.
#[must_use]
pub(crate) struct Pastes;

impl Drop for Pastes {
    fn drop(&mut self) {
        let mut out = io::stdout();
        // Ignore a closed terminal.
        let _ = out.write_all(b"\x1b[?2004l").and_then(|()| out.flush());
    }
}

fn plain_width(line: &str) -> usize {
    width(&anstream::adapter::strip_str(line).to_string())
}
