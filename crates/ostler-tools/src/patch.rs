//! The differences between two texts, in the published format.

use imara_diff::{Algorithm, Diff, Hunk, InternedInput};
use ostler_proto::build;
use ostler_proto::tool::PatchHunk;

/// Unchanged lines shown around a change.
const CONTEXT: u32 = 3;

/// The changed places.
pub fn hunks(before: &str, after: &str) -> Vec<PatchHunk> {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let mut places: Vec<Vec<Hunk>> = Vec::new();
    for hunk in diff.hunks() {
        let near = |place: &Vec<Hunk>| {
            place.last().is_some_and(|last| hunk.before.start - last.before.end <= 2 * CONTEXT)
        };
        match places.last_mut() {
            Some(place) if near(place) => place.push(hunk),
            _ => places.push(vec![hunk]),
        }
    }
    places.iter().filter_map(|place| render(&input, place)).collect()
}

/// How many lines a patch adds and removes.
pub(crate) fn counts(hunks: &[PatchHunk]) -> (usize, usize) {
    let count = |mark| {
        hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.starts_with(mark)).count()
    };
    (count('+'), count('-'))
}

fn render(input: &InternedInput<&str>, place: &[Hunk]) -> Option<PatchHunk> {
    let (first, last) = (place.first()?, place.last()?);
    let lead = CONTEXT.min(first.before.start);
    let tail = CONTEXT.min(input.before.len() as u32 - last.before.end);
    let old = first.before.start - lead..last.before.end + tail;
    let new = first.after.start - lead..last.after.end + tail;

    let mut lines = Vec::new();
    let mut at = old.start;
    for hunk in place {
        push(&mut lines, ' ', before(input, at..hunk.before.start));
        push(&mut lines, '-', before(input, hunk.before.clone()));
        let added = &input.after[hunk.after.start as usize..hunk.after.end as usize];
        push(&mut lines, '+', added.iter().map(|token| input.interner[*token]));
        at = hunk.before.end;
    }
    push(&mut lines, ' ', before(input, at..old.end));
    Some(build!(PatchHunk {
        old_start: u64::from(old.start) + 1,
        old_lines: u64::from(old.end - old.start),
        new_start: u64::from(new.start) + 1,
        new_lines: u64::from(new.end - new.start),
        lines
    }))
}

fn before<'a>(
    input: &'a InternedInput<&'a str>,
    range: std::ops::Range<u32>,
) -> impl Iterator<Item = &'a str> {
    input.before[range.start as usize..range.end as usize]
        .iter()
        .map(|token| input.interner[*token])
}

fn push<'a>(lines: &mut Vec<String>, mark: char, texts: impl Iterator<Item = &'a str>) {
    for text in texts {
        let line = text.strip_suffix('\n');
        lines.push(format!("{mark}{}", line.unwrap_or(text)));
        if line.is_none() {
            lines.push("\\ No newline at end of file".to_owned());
        }
    }
}
