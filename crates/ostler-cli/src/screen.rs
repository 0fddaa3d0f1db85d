//! What the user sees. The only place that writes to standard output.
//!
//! On a terminal the last lines may be *live*: drawn again and again (a spinner, a menu), and gone before anything
//! else is written. Elsewhere there are no colours and no cursor movements.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

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
    wrap: Wrap,
}

impl Screen {
    pub(crate) fn new() -> Self {
        let choice = AutoStream::choice(&io::stdout());
        let is_terminal = io::stdout().is_terminal();
        Self {
            out: AutoStream::new(io::stdout(), choice),
            is_terminal,
            is_live: is_terminal && choice != ColorChoice::Never,
            in_line: false,
            drawn: Vec::new(),
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
        for line in self.fitted(&clean(text)) {
            self.line(&format!("{style}{line}{style:#}"))?;
        }
        Ok(())
    }

    /// The lines of a text: broken between words on a terminal, as they are elsewhere.
    pub(crate) fn fitted(&self, text: &str) -> Vec<String> {
        if !self.is_terminal {
            return text.lines().map(str::to_owned).collect();
        }
        text.lines().flat_map(|line| wrapped(line, self.columns())).collect()
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
        self.to_first_drawn()?;
        for (index, line) in lines.iter().enumerate() {
            let end = if index + 1 < lines.len() { "\n" } else { "" };
            write!(self.out, "{line}\x1b[K{end}")?;
        }
        // What is left of more lines than these.
        write!(self.out, "\x1b[J")?;
        self.drawn = lines.iter().map(|line| plain_width(line)).collect();
        self.out.flush()
    }

    /// Takes the live lines away.
    pub(crate) fn erase(&mut self) -> io::Result<()> {
        if self.drawn.is_empty() {
            return Ok(());
        }
        self.to_first_drawn()?;
        write!(self.out, "\x1b[J")?;
        self.drawn.clear();
        self.out.flush()
    }

    /// Goes to the beginning of the live lines, which in a window made narrower may take more lines than were drawn.
    fn to_first_drawn(&mut self) -> io::Result<()> {
        if self.drawn.is_empty() {
            return Ok(());
        }
        let columns = tty::columns().unwrap_or(USUAL_COLUMNS);
        let rows: usize = self.drawn.iter().map(|width| width.div_ceil(columns).max(1)).sum();
        match rows - 1 {
            0 => write!(self.out, "\r"),
            up => write!(self.out, "\r\x1b[{up}A"),
        }
    }

    /// A failure of the program, on standard error.
    pub(crate) fn complain(&mut self, text: &str) {
        let _ = self.end_line();
        let mut stderr = AutoStream::new(io::stderr(), ColorChoice::Auto);
        let _ = writeln!(stderr, "{RED}ostler:{RED:#} {}", clean(text));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing half-drawn is left behind, however the program ends.
        let _ = self.erase();
    }
}

fn plain_width(line: &str) -> usize {
    width(&anstream::adapter::strip_str(line).to_string())
}
