//! Estimates how complex a page is to parse.
//!
//! An HTML parser searches all open tags again and again, and repeats formatting that was never closed: a small page
//! can keep it busy for hours, or fill the memory. So the work is estimated first, in one pass over the tags.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, EndTag, StartTag, Tag, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

use crate::text;

/// The most searches of open tags: fast, but there may be very many.
const MAX_LOOKS: usize = 20_000_000;
/// The most repeated tags: each takes memory.
const MAX_REPEATED: usize = 1_000_000;
/// How many bytes are tokenized at once.
const PIECE: usize = 8 * 1024;
/// The most useless attributes: each attribute of a tag is compared with all before it.
const MAX_IDLE_WORDS: usize = 10_000;

/// Tags that are never closed.
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
];
/// Tags that end where the same tag starts, or where their parent ends.
const IMPLIED: &[&str] =
    &["dd", "dt", "li", "optgroup", "option", "p", "tbody", "td", "tfoot", "th", "thead", "tr"];
/// Tags that stop the search for an open tag.
const BARRIERS: &[&str] =
    &["blockquote", "button", "dl", "object", "ol", "select", "table", "template", "ul"];
/// Tags whose content is not text of the page.
const SILENT: &[&str] = &["script", "style", "title", "textarea", "noscript", "iframe", "noframes"];

/// Checks that a parser can handle the page with reasonable effort.
///
/// # Errors
/// If not, the page's bare text.
pub(super) fn check_complexity(html: &str) -> Result<(), String> {
    let tokenizer = Tokenizer::new(ComplexityCounter::default(), TokenizerOpts::default());
    let queue = BufferQueue::default();
    let (mut rest, mut n_idle_words, mut n_tokens) = (html, 0, 0);
    while !rest.is_empty() {
        let piece = text::head(rest, PIECE);
        rest = &rest[piece.len()..];
        queue.push_back(StrTendril::from_slice(piece));
        let _ = tokenizer.feed(&queue);
        let now = tokenizer.sink.0.borrow().n_tokens;
        let is_idle = std::mem::replace(&mut n_tokens, now) == now;
        n_idle_words = if is_idle { n_idle_words } else { 0 };
        n_idle_words += piece.split_ascii_whitespace().count();
        if n_idle_words > MAX_IDLE_WORDS {
            return Err(tokenizer.sink.0.take().text);
        }
    }
    tokenizer.end();
    let state = tokenizer.sink.0.take();
    if state.n_looks > MAX_LOOKS || state.n_repeated > MAX_REPEATED {
        Err(state.text)
    } else {
        Ok(())
    }
}

#[derive(Default)]
struct ComplexityCounter(RefCell<State>);

#[derive(Default)]
struct State {
    n_tokens: usize,
    open: Vec<Box<str>>,
    /// Tags not closed where they should be; the parser may open them repeatedly.
    n_leaked: usize,
    n_looks: usize,
    n_repeated: usize,
    /// The tag whose content is skipped.
    silent: Option<Box<str>>,
    text: String,
}

impl TokenSink for ComplexityCounter {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut state = self.0.borrow_mut();
        match token {
            Token::ParseError(_) => return TokenSinkResult::Continue,
            Token::CharacterTokens(text) if state.silent.is_none() => state.text.push_str(&text),
            Token::TagToken(tag) => {
                state.tag(&tag);
                if tag.kind == StartTag {
                    state.n_tokens += 1;
                    return content_of(&tag.name);
                }
            }
            _ => {}
        }
        state.n_tokens += 1;
        TokenSinkResult::Continue
    }
}

/// How to tokenize the content of a tag.
fn content_of(tag: &str) -> TokenSinkResult<()> {
    match tag {
        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
        "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
        "style" | "noscript" | "iframe" | "noframes" | "noembed" | "xmp" => {
            TokenSinkResult::RawData(RawKind::Rawtext)
        }
        "plaintext" => TokenSinkResult::Plaintext,
        _ => TokenSinkResult::Continue,
    }
}

impl State {
    fn tag(&mut self, tag: &Tag) {
        let name = &*tag.name;
        if tag.kind == EndTag && self.silent.as_deref() == Some(name) {
            self.silent = None;
        } else if tag.kind == StartTag && SILENT.contains(&name) {
            self.silent = Some(name.into());
        }
        let is_block = !matches!(name, "a" | "b" | "code" | "em" | "i" | "span" | "strong");
        if is_block && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        // Over the limit; from here on only the text counts.
        if self.n_looks > MAX_LOOKS || self.n_repeated > MAX_REPEATED {
            return;
        }
        self.n_looks += self.open.len();
        self.n_repeated += self.n_leaked;
        match tag.kind {
            EndTag => self.close(name, !BARRIERS.contains(&name)),
            StartTag if VOID.contains(&name) => {}
            StartTag => {
                if IMPLIED.contains(&name) {
                    self.close(name, true);
                }
                self.open.push(name.into());
            }
        }
    }

    /// Closes a tag and everything open in it, unless a barrier precedes it.
    fn close(&mut self, name: &str, stops: bool) {
        for at in (0..self.open.len()).rev() {
            if *self.open[at] == *name {
                let leaked = self.open.drain(at..).skip(1);
                self.n_leaked += leaked.filter(|it| !IMPLIED.contains(&&**it)).count();
                return;
            }
            if stops && BARRIERS.contains(&&*self.open[at]) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_pages_are_accepted() {
        for html in [
            "<p>a".repeat(100_000),
            "<ul><li>a<li>b</ul>".repeat(50_000),
            format!("<table>{}</table>", "<tr><td>a<td>b".repeat(50_000)),
            "<div><p>a <b>b</b><br></div>".repeat(50_000),
            format!("<img src=\"data:{}\">x", "A".repeat(900_000)),
            format!("<pre>{}</pre>", "word ".repeat(100_000)),
            "plain".to_owned(),
            String::new(),
        ] {
            let start = text::head(&html, 40);
            assert_eq!(check_complexity(&html), Ok(()), "{start}");
        }
    }

    #[test]
    fn pages_made_to_keep_a_parser_busy_are_refused() {
        let formats: String = (0..500).map(|n| format!("<b id={n}>")).collect();
        let attributes: String = (0..400_000).map(|n| format!(" a{n}")).collect();
        for (html, expected) in [
            ("<div>".repeat(50_000) + "end", "end"),
            (format!("<p>{formats}</p>{}end", "<p>x</p>".repeat(20_000)), "end"),
            (format!("<div>start<x{attributes}>"), "start"),
            (format!("{}<script>no</script>end", "<i><div></i>".repeat(20_000)), "end"),
        ] {
            let text = check_complexity(&html).unwrap_err();
            assert!(text.contains(expected) && !text.contains("no"), "{}", text::head(&html, 40));
        }
    }
}
