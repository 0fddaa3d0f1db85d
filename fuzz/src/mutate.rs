//! From good inputs to bad ones: small damage that keeps most of the structure, so that it gets past the parser.

use std::ops::Range;

use ostler_fuzz::random::Random;

/// Words that mean something to a JSON parser, to a number type or to the protocol.
const WORDS: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-1",
    "1.0",
    "1e2",
    "0.1",
    "1e400",
    "-1e-400",
    "9007199254740993",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "[]",
    "{}",
    "[{}]",
    "\"\"",
    "\"\\ud83d\"",
    "\"\\udc00\\ud800\"",
    "\"\\ud83d\\ude00\"",
    "\"\\u0000\"",
    "\"é\"",
    "\"user\"",
    "\"assistant\"",
    "\"system\"",
    "\"result\"",
    "\"success\"",
    "\"error\"",
    "\"text\"",
    "\"tool_use\"",
    "\"tool_result\"",
    "\"control_request\"",
    "\"control_response\"",
    "\"can_use_tool\"",
    "\"initialize\"",
    "\"hook_callback\"",
    "\"mcp_message\"",
    "\"allow\"",
    "\"deny\"",
    "\"type\"",
    "\"subtype\"",
    "\"uuid\"",
];

/// Makes inputs out of seeds.
pub(crate) struct Mutator<'a> {
    seeds: &'a [Vec<u8>],
    random: Random,
}

impl<'a> Mutator<'a> {
    pub(crate) fn new(seeds: &'a [Vec<u8>], random: Random) -> Self {
        Self { seeds, random }
    }

    /// One to three damaged lines.
    pub(crate) fn lines(&mut self) -> Vec<u8> {
        let mut input = Vec::new();
        for index in 0..1 + self.random.below(3) {
            if index > 0 {
                input.extend_from_slice(if self.one_in(4) { b"\r\n" } else { b"\n" });
            }
            let mut line = self.random.pick(self.seeds).clone();
            // None at all now and then: good lines between bad ones must come through.
            for _ in 0..self.random.below(5) {
                self.damage(&mut line);
            }
            input.extend_from_slice(&line);
        }
        input
    }

    /// Bytes without any structure.
    pub(crate) fn noise(&mut self) -> Vec<u8> {
        (0..self.random.below(400)).map(|_| self.random.next() as u8).collect()
    }

    fn damage(&mut self, line: &mut Vec<u8>) {
        match self.random.below(16) {
            0 => self.flip_bit(line),
            1 => self.insert_byte(line),
            2 => self.delete_bytes(line),
            3 => self.splice(line),
            4..=7 => self.replace_value(line),
            8 | 9 => self.duplicate_entry(line),
            10 | 11 => self.delete_entry(line),
            12 => self.nest(line),
            13 => self.truncate(line),
            14 => self.blow_up_string(line),
            _ => self.move_entry_to_the_front(line),
        }
    }

    fn flip_bit(&mut self, line: &mut [u8]) {
        let (at, bit) = (self.random.below(line.len()), self.random.below(8));
        if let Some(byte) = line.get_mut(at) {
            *byte ^= 1 << bit;
        }
    }

    fn insert_byte(&mut self, line: &mut Vec<u8>) {
        let at = self.random.below(line.len() + 1);
        let byte = *self.random.pick(b"{}[]\",:\\\r\n \0\xff\xc3eu09-");
        line.insert(at, byte);
    }

    fn delete_bytes(&mut self, line: &mut Vec<u8>) {
        let start = self.random.below(line.len());
        let end = (start + 1 + self.random.below(4)).min(line.len());
        line.drain(start..end);
    }

    fn splice(&mut self, line: &mut Vec<u8>) {
        let other = self.random.pick(self.seeds);
        line.truncate(self.random.below(line.len() + 1));
        line.extend_from_slice(&other[self.random.below(other.len() + 1)..]);
    }

    fn truncate(&mut self, line: &mut Vec<u8>) {
        line.truncate(self.random.below(line.len() + 1));
    }

    fn replace_value(&mut self, line: &mut Vec<u8>) {
        let Some(entry) = self.entry(line) else { return };
        let word = if self.one_in(4) {
            // A value from elsewhere: right in itself, wrong in this place.
            let other = self.random.pick(self.seeds);
            let Some(donor) = self.entry(other) else { return };
            other[donor.value].to_vec()
        } else {
            self.random.pick(WORDS).as_bytes().to_vec()
        };
        line.splice(entry.value, word);
    }

    fn duplicate_entry(&mut self, line: &mut Vec<u8>) {
        let Some(entry) = self.entry(line) else { return };
        let mut copy = line[entry.whole.clone()].to_vec();
        copy.push(b',');
        if self.one_in(2) {
            // The same key with another value.
            let from = entry.value.start - entry.whole.start;
            let word = self.random.pick(WORDS).as_bytes().iter().copied().chain([b',']);
            copy.splice(from.., word);
        }
        line.splice(entry.whole.start..entry.whole.start, copy);
    }

    fn delete_entry(&mut self, line: &mut Vec<u8>) {
        let Some(entry) = self.entry(line) else { return };
        let mut gone = entry.whole;
        if line.get(gone.end) == Some(&b',') {
            gone.end += 1;
        } else if line[..gone.start].last() == Some(&b',') {
            gone.start -= 1;
        }
        line.drain(gone);
    }

    fn move_entry_to_the_front(&mut self, line: &mut Vec<u8>) {
        let Some(Entry { whole, .. }) = self.entry(line) else { return };
        if line.first() != Some(&b'{') || whole.start < 2 || line[whole.start - 1] != b',' {
            return;
        }
        let mut moved: Vec<u8> = line.drain(whole.start - 1..whole.end).skip(1).collect();
        moved.push(b',');
        line.splice(1..1, moved);
    }

    /// Deeper than the parser follows, up to some kilobytes of brackets.
    fn nest(&mut self, line: &mut Vec<u8>) {
        let Some(entry) = self.entry(line) else { return };
        let depth = *self.random.pick(&[3, 100, 120, 125, 127, 128, 130, 4000]);
        let (open, close): (&[u8], &[u8]) =
            if self.one_in(2) { (b"[", b"]") } else { (b"{\"a\":", b"}") };
        let value = line[entry.value.clone()].to_vec();
        let nested = [open.repeat(depth), value, close.repeat(depth)].concat();
        line.splice(entry.value, nested);
    }

    fn blow_up_string(&mut self, line: &mut Vec<u8>) {
        let Some(entry) = self.entry(line) else { return };
        let piece = *self.random.pick(&["x", "é", "\\n", "\\ud83d", "\\\\", "\u{10ffff}"]);
        let count = *self.random.pick(&[10, 399, 401, 1024, 5000]);
        line.splice(entry.value, format!("\"{}\"", piece.repeat(count)).into_bytes());
    }

    /// Some `"key":value` of the line.
    fn entry(&mut self, line: &[u8]) -> Option<Entry> {
        let from = self.random.below(line.len());
        let starts = (from..line.len()).chain(0..from);
        starts
            .filter(|at| *at > 0 && line[*at] == b'"' && matches!(line[*at - 1], b'{' | b','))
            .find_map(|at| Entry::at(line, at))
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.random.below(many) == 0
    }
}

/// Where a `"key":value` stands.
#[derive(Debug, PartialEq)]
struct Entry {
    whole: Range<usize>,
    value: Range<usize>,
}

impl Entry {
    /// The entry whose key begins at `start`; `None` if no key does. Damaged text gives odd but valid ranges.
    fn at(line: &[u8], start: usize) -> Option<Self> {
        let key_end = string_end(line, start)?;
        if line.get(key_end) != Some(&b':') {
            return None;
        }
        let end = value_end(line, key_end + 1);
        Some(Self { whole: start..end, value: key_end + 1..end })
    }
}

/// Behind the closing quote of the string that begins at `start`.
fn string_end(line: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match line.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Before the comma or bracket that ends the value which begins at `start`.
fn value_end(line: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0usize);
    while let Some(byte) = line.get(at) {
        match byte {
            b'"' => {
                at = string_end(line, at).unwrap_or(line.len());
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' if depth == 0 => return at,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    line.len().max(start)
}

#[cfg(test)]
mod tests {
    use super::{Entry, Mutator};
    use ostler_fuzz::random::Random;

    #[test]
    fn an_entry_ends_where_its_value_does() {
        let line = br#"{"a":{"b":[1,"}\""]},"c":2}"#;
        assert_eq!(Entry::at(line, 1), Some(Entry { whole: 1..20, value: 5..20 }));
        assert_eq!(Entry::at(line, 21), Some(Entry { whole: 21..26, value: 25..26 }));
        assert_eq!(Entry::at(line, 13), None);
    }

    #[test]
    fn much_of_what_is_made_is_still_json_and_much_is_not() {
        let seeds = vec![br#"{"type":"system","a":{"b":[1,2]},"c":"text"}"#.to_vec()];
        let mut mutator = Mutator::new(&seeds, Random::new(5));
        let inputs: Vec<_> = (0..1000).map(|_| mutator.lines()).collect();
        let lines: Vec<_> =
            inputs.iter().flat_map(|input| input.split(|byte| *byte == b'\n')).collect();
        let good = lines
            .iter()
            .filter(|line| serde_json::from_slice::<serde_json::Value>(line).is_ok())
            .count();
        assert!(good * 4 > lines.len() && good * 10 < lines.len() * 9, "{good} of {}", lines.len());
    }
}
