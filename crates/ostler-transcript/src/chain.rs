//! Reads the conversation from the lines of a file: find the last leaf, walk to the root.
//!
//! A response with several calls is several lines, and every result is a child of its own call. The walk sees only one
//! of these branches; the others are inserted after the response they belong to.

use std::collections::{HashMap, HashSet};

use ostler_proto::ToolUseId;
use ostler_proto::transcript::TranscriptLine;

use super::line::{Links, answers, as_user, calls, links, message_id, written_at};

/// The lines of a file as a tree. Lines are identified by their position.
pub(super) struct Tree<'a> {
    lines: &'a [TranscriptLine],
    nodes: Vec<Option<Links<'a>>>,
    by_uuid: HashMap<&'a str, usize>,
    /// Whether the file is a subagent's.
    sidechain: bool,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(lines: &'a [TranscriptLine], sidechain: bool) -> Self {
        let mut nodes: Vec<_> = lines.iter().map(links).collect();
        let mut by_uuid = HashMap::new();
        for (at, node) in nodes.iter_mut().enumerate().rev() {
            // Of two lines with one uuid the later one counts.
            if let Some(links) = node
                && *by_uuid.entry(links.uuid).or_insert(at) != at
            {
                *node = None;
            }
        }
        Self { lines, nodes, by_uuid, sidechain }
    }

    /// The line with a uuid.
    pub(super) fn position(&self, uuid: &str) -> Option<usize> {
        self.by_uuid.get(uuid).copied()
    }

    /// The last message of the conversation.
    pub(super) fn leaf(&self) -> Option<usize> {
        let parents: HashSet<&str> = self.tree().filter_map(|(_, links)| links.parent).collect();
        let ends = self.tree().filter(|(_, links)| !parents.contains(links.uuid));
        let leaves: Vec<usize> = ends.filter_map(|(at, _)| self.spoken(at)).collect();
        let is_main = |at: &usize| {
            self.nodes[*at]
                .is_some_and(|node| node.sidechain == self.sidechain && !node.meta && !node.team)
        };
        let main = leaves.iter().copied().filter(is_main).max();
        main.or_else(|| leaves.into_iter().max())
    }

    /// The line after which a conversation continues that ends with this message: the vendor's program writes lines after it
    /// that are not messages, and finds the next message only below the last of them.
    pub(super) fn end(&self, leaf: usize) -> usize {
        let parents: HashSet<&str> = self.tree().filter_map(|(_, links)| links.parent).collect();
        let ends = self.tree().filter(|(_, links)| !parents.contains(links.uuid));
        let below = ends.map(|(at, _)| at).filter(|at| self.spoken(*at) == Some(leaf));
        below.max().unwrap_or(leaf)
    }

    /// The lines from the beginning to a leaf.
    pub(super) fn chain(&self, leaf: usize) -> Vec<usize> {
        let mut seen = HashSet::new();
        let mut chain: Vec<usize> = std::iter::successors(Some(leaf), |at| self.parent(*at))
            .take_while(|at| seen.insert(*at))
            .collect();
        chain.reverse();
        self.with_parallel_calls(chain, &seen)
    }

    /// Whether every line's parent exists.
    pub(super) fn is_closed(&self) -> bool {
        self.tree().all(|(_, links)| links.parent.is_none_or(|it| self.by_uuid.contains_key(it)))
    }

    /// Whether a line belongs to the conversation, and not to a subagent's or teammate's.
    pub(super) fn is_ours(&self, at: usize) -> bool {
        self.nodes[at].is_some_and(|node| node.sidechain == self.sidechain && !node.team)
    }

    pub(super) fn is_meta(&self, at: usize) -> bool {
        self.nodes[at].is_some_and(|node| node.meta)
    }

    fn tree(&self) -> impl Iterator<Item = (usize, Links<'a>)> {
        self.nodes.iter().enumerate().filter_map(|(at, node)| Some((at, (*node)?)))
    }

    /// The nearest message at or above a line.
    fn spoken(&self, from: usize) -> Option<usize> {
        let mut seen = HashSet::new();
        std::iter::successors(Some(from), |at| self.parent(*at))
            .take_while(|at| seen.insert(*at))
            .find(|at| {
                matches!(self.lines[*at], TranscriptLine::User(_) | TranscriptLine::Assistant(_))
            })
    }

    fn parent(&self, at: usize) -> Option<usize> {
        let parent = self.nodes[at]?.parent?;
        // The parent may be lost. Files are written in order: continue with the line before.
        self.position(parent).or_else(|| (0..at).rev().find(|before| self.is_ours(*before)))
    }

    fn with_parallel_calls(&self, chain: Vec<usize>, seen: &HashSet<usize>) -> Vec<usize> {
        let mut anchors: HashMap<&str, usize> = HashMap::new();
        for &at in &chain {
            anchors.extend(message_id(&self.lines[at]).map(|id| (id, at)));
        }
        if anchors.is_empty() {
            return chain;
        }
        let owners = self.owners();
        let mut answered: HashSet<&ToolUseId> =
            chain.iter().flat_map(|at| answers(&self.lines[*at])).map(|(id, _)| id).collect();
        let mut missing: HashMap<usize, MissingBlocks> = HashMap::new();
        for (at, node) in self.tree() {
            if seen.contains(&at) || node.sidechain != self.sidechain {
                continue;
            }
            let line = &self.lines[at];
            if let Some(&anchor) = message_id(line).and_then(|id| anchors.get(id)) {
                missing.entry(anchor).or_default().calls.push(at);
                continue;
            }
            let Some(first) = answers(line).next().map(|(id, _)| id) else { continue };
            let of_line = |uuid: &str| message_id(&self.lines[self.position(uuid)?]);
            let source = as_user(line).and_then(|entry| {
                of_line(entry.place.source_tool_assistant_uuid.as_ref()?.as_str())
            });
            let parent = node.parent.and_then(of_line);
            let response = parent.or(source).or_else(|| *owners.get(first)?);
            if let Some(&anchor) = response.and_then(|id| anchors.get(id))
                && answers(line).any(|(id, _)| !answered.contains(id))
            {
                answered.extend(answers(line).map(|(id, _)| id));
                missing.entry(anchor).or_default().results.push(at);
            }
        }
        chain
            .into_iter()
            .flat_map(|at| {
                let missing = missing.remove(&at).unwrap_or_default();
                std::iter::once(at).chain(missing.in_order(self.lines))
            })
            .collect()
    }

    /// Which response made a call; `None` for a call that two responses claim.
    fn owners(&self) -> HashMap<&'a ToolUseId, Option<&'a str>> {
        let mut owners = HashMap::new();
        for (at, _) in self.tree() {
            let Some(response) = message_id(&self.lines[at]) else { continue };
            for call in calls(&self.lines[at]) {
                let owner = owners.entry(call).or_insert(Some(response));
                if *owner != Some(response) {
                    *owner = None;
                }
            }
        }
        owners
    }
}

/// The blocks of one response that a walk left out.
#[derive(Default)]
struct MissingBlocks {
    calls: Vec<usize>,
    results: Vec<usize>,
}

impl MissingBlocks {
    fn in_order(mut self, lines: &[TranscriptLine]) -> impl Iterator<Item = usize> {
        self.calls.sort_by_key(|at| written_at(&lines[*at]));
        self.results.sort_by_key(|at| written_at(&lines[*at]));
        self.calls.into_iter().chain(self.results)
    }
}
