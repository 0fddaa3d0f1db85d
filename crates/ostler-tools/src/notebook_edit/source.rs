//! A notebook's text: the positions of its cells, and its layout. Cells are cut out and inserted; nothing else moves.

use std::io;
use std::ops::Range;

use serde::Serialize as _;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use crate::text;

pub(super) struct Source<'a> {
    text: &'a str,
    /// Between the brackets of the list of cells.
    list: Range<usize>,
    cells: Vec<Range<usize>>,
    layout: Layout<'a>,
}

/// The JSON layout.
enum Layout<'a> {
    /// Each value on its own line, with this indentation per level.
    Lines(&'a str),
    /// All on one line.
    OneLine { spaced: bool },
}

impl<'a> Source<'a> {
    /// Finds the cells in a text that is known to be JSON.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let mut at = after(text, 0, '{')?;
        let mut list = None;
        while let Some((key, end)) = value::<String>(text, at) {
            let start = after(text, end, ':')?;
            let (_, end) = value::<IgnoredAny>(text, start)?;
            if key == "cells" {
                list = Some(after(text, start, '[')?..end - 1);
            }
            let Some(next) = after(text, end, ',') else { break };
            at = next;
        }
        let list = list?;
        let mut cells = Vec::new();
        let mut at = list.start;
        while let Some((_, end)) = value::<IgnoredAny>(&text[..list.end], at) {
            let start = at + text[at..].len() - text[at..].trim_start().len();
            cells.push(start..end);
            match after(&text[..list.end], end, ',') {
                Some(next) => at = next,
                None => break,
            }
        }
        Some(Self { text, list, cells, layout: Layout::of(text) })
    }

    pub(super) fn n_cells(&self) -> usize {
        self.cells.len()
    }

    /// The text with one cell replaced.
    pub(super) fn with(&self, index: usize, cell: &Value) -> String {
        self.spliced(self.cells[index].clone(), &self.rendered(cell))
    }

    /// The text without a cell.
    pub(super) fn without(&self, index: usize) -> String {
        let cells = &self.cells;
        let gap = match (index.checked_sub(1), cells.get(index + 1)) {
            (Some(before), _) => cells[before].end..cells[index].end,
            (None, Some(next)) => cells[index].start..next.start,
            (None, None) => self.list.clone(),
        };
        self.spliced(gap, "")
    }

    /// The text with a new cell at this index.
    pub(super) fn with_new(&self, index: usize, cell: &Value) -> String {
        let cell = self.rendered(cell);
        let Some(first) = self.cells.first() else {
            let (before, after) = match self.layout {
                Layout::Lines(unit) => (format!("\n{unit}{unit}"), format!("\n{unit}")),
                Layout::OneLine { .. } => (String::new(), String::new()),
            };
            return self.spliced(self.list.clone(), &self.in_line_ends(before + &cell + &after));
        };
        match index.checked_sub(1) {
            None => {
                let gap = self.gap();
                self.spliced(first.start..first.start, &format!("{cell},{gap}"))
            }
            Some(before) => {
                let end = self.cells[before].end;
                self.spliced(end..end, &format!(",{}{cell}", self.gap()))
            }
        }
    }

    /// The text between a comma and the next cell.
    fn gap(&self) -> &str {
        match (&self.layout, self.cells.first()) {
            (Layout::OneLine { spaced: true }, _) => " ",
            (Layout::OneLine { spaced: false }, _) | (_, None) => "",
            (Layout::Lines(_), Some(first)) => &self.text[self.list.start..first.start],
        }
    }

    fn spliced(&self, gap: Range<usize>, piece: &str) -> String {
        [&self.text[..gap.start], piece, &self.text[gap.end..]].concat()
    }

    /// A cell in the layout of this text, two levels deep.
    fn rendered(&self, cell: &Value) -> String {
        let written = match &self.layout {
            Layout::Lines(unit) => {
                let written = write(cell, PrettyFormatter::with_indent(unit.as_bytes()));
                // Line breaks within strings are escaped, so all of these belong to the layout.
                written.replace('\n', &format!("\n{unit}{unit}"))
            }
            Layout::OneLine { spaced: true } => write(cell, SpacedJson),
            Layout::OneLine { spaced: false } => write(cell, CompactFormatter),
        };
        self.in_line_ends(written)
    }

    fn in_line_ends(&self, piece: String) -> String {
        if text::is_crlf(self.text) { text::to_crlf(&piece) } else { piece }
    }
}

impl<'a> Layout<'a> {
    fn of(text: &'a str) -> Self {
        let start = text.trim_start().trim_start_matches('{');
        let space = &start[..start.len() - start.trim_start().len()];
        match space.rsplit_once('\n') {
            Some((_, unit)) => Self::Lines(unit),
            None => Self::OneLine { spaced: text.contains("\": ") },
        }
    }
}

/// The position after `char`, if it is the next character that is not white space.
fn after(text: &str, at: usize, char: char) -> Option<usize> {
    let rest = text[at..].trim_start();
    rest.starts_with(char).then(|| text.len() - rest.len() + char.len_utf8())
}

/// The value at this position, and where it ends.
fn value<T: DeserializeOwned>(text: &str, at: usize) -> Option<(T, usize)> {
    let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<T>();
    let value = values.next()?.ok()?;
    Some((value, at + values.byte_offset()))
}

fn write(value: &Value, formatter: impl Formatter) -> String {
    let mut bytes = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter));
    written.expect("a value of JSON can be written as JSON");
    String::from_utf8(bytes).expect("JSON is text")
}

/// One line with a space after each comma and colon, as Python writes it.
struct SpacedJson;

impl Formatter for SpacedJson {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}
