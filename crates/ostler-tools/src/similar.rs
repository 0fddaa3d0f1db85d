//! Suggestions for names and lines that do not exist.

use std::collections::HashMap;

use ostler_files::RealPath;

const MAX_NAMES: usize = 3;
/// How many entries of a folder are compared.
const MAX_ENTRIES: usize = 5_000;
const ALIKE: f32 = 0.5;

/// The similarity of two texts, from 0 to 1: the share of common character pairs.
pub(crate) fn similarity(left: &str, right: &str) -> f32 {
    let (left, right) = (pairs(left), pairs(right));
    let total: usize = left.values().sum::<usize>() + right.values().sum::<usize>();
    if total == 0 {
        return 0.0;
    }
    let common: usize =
        left.iter().map(|(pair, n)| (*n).min(right.get(pair).copied().unwrap_or(0))).sum();
    2.0 * common as f32 / total as f32
}

/// Names next to a missing file that are similar, the most similar first.
pub(crate) fn similar_names(path: &RealPath) -> Vec<String> {
    let (Ok(parent), Some(name)) = (path.parent(), path.as_path().file_name()) else {
        return Vec::new();
    };
    let Ok(entries) = parent.names(MAX_ENTRIES) else { return Vec::new() };
    let name = name.to_string_lossy().to_lowercase();
    let mut names: Vec<(f32, String)> = entries
        .into_iter()
        .filter_map(|entry| entry.into_string().ok())
        .map(|other| (similarity(&name, &other.to_lowercase()), other))
        .filter(|(similarity, _)| *similarity >= ALIKE)
        .collect();
    names.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
    names.into_iter().take(MAX_NAMES).map(|(_, name)| name).collect()
}

/// The number, from 1, and the text of the most similar line.
pub(crate) fn nearest_line<'a>(text: &'a str, wanted: &str) -> Option<(usize, &'a str)> {
    let wanted = wanted.trim();
    let scored = text
        .lines()
        .enumerate()
        .map(|(index, line)| (similarity(line.trim(), wanted), index, line));
    let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.filter(|(similarity, ..)| *similarity >= ALIKE).map(|(_, index, line)| (index + 1, line))
}

fn pairs(text: &str) -> HashMap<(char, char), usize> {
    // Lines can be megabytes long; their starts are enough.
    let text = text.chars().take(400);
    let padded = std::iter::once(' ').chain(text).chain(std::iter::once(' '));
    let mut counts = HashMap::new();
    for pair in padded.clone().zip(padded.skip(1)) {
        *counts.entry(pair).or_insert(0) += 1;
    }
    counts
}
