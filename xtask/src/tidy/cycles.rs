//! Finds import cycles between modules of a crate. Such modules cannot be read one at a time, so a cycle needs a
//! reason in [`ALLOWED`].
//!
//! A module here is a file or folder directly below `src`. Its imports are the paths that start with `crate::`, or
//! with enough `super::` to reach the crate. Tests do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;

/// The allowed cycles: crate, number of modules, and reason. A smaller cycle must be entered as well, so that it
/// cannot grow back.
const ALLOWED: &[(&str, usize, &str)] = &[
    (
        "ostler-engine",
        6,
        "the loop itself: a session drives turns, which run calls, commands and subagents, which begin turns",
    ),
    (
        "ostler-proto",
        3,
        "frames, control requests and hooks contain each other, as in the protocol",
    ),
];

/// The modules of a crate and what each imports.
type Graph<'a> = BTreeMap<&'a str, BTreeSet<String>>;

/// Checks the cycles of every crate.
pub(super) fn check(sources: &[(String, String)]) -> Vec<Finding> {
    check_with(sources, ALLOWED)
}

fn check_with(sources: &[(String, String)], allowed: &[(&str, usize, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, graph) in graphs(sources) {
        let found = cycles(&graph);
        let sizes: Vec<usize> = found.iter().map(Vec::len).collect();
        let known: Vec<usize> =
            allowed.iter().filter(|(krate, ..)| *krate == name).map(|(_, size, _)| *size).collect();
        let path = format!("crates/{name}/src/lib.rs");
        for cycle in found.iter().filter(|cycle| !known.contains(&cycle.len())) {
            let list = cycle.join(", ");
            findings.push(Finding::new(
                &path,
                1,
                format!("{} modules form an import cycle: {list}; move what they share to a separate module", cycle.len()),
            ));
        }
        for size in known.iter().filter(|size| !sizes.contains(size)) {
            findings.push(Finding::new(
                "xtask/src/tidy/cycles.rs",
                1,
                format!("{name} has no import cycle of {size} modules any more; update or remove its entry"),
            ));
        }
    }
    findings
}

fn graphs(sources: &[(String, String)]) -> BTreeMap<&str, Graph<'_>> {
    let mut graphs: BTreeMap<&str, Graph<'_>> = BTreeMap::new();
    for (path, text) in sources {
        let Some((name, file)) = source_file(path) else { continue };
        let module = file.split('/').next().unwrap_or(file).trim_end_matches(".rs");
        // The root of a crate only re-exports.
        if ["lib", "main"].contains(&module) {
            continue;
        }
        let imports = graphs.entry(name).or_default().entry(module).or_default();
        imports.extend(imports_of(file, text));
    }
    for graph in graphs.values_mut() {
        let modules: BTreeSet<&str> = graph.keys().copied().collect();
        for (module, imports) in graph.iter_mut() {
            imports.retain(|import| import != module && modules.contains(import.as_str()));
        }
    }
    graphs
}

/// The crate and the path below its `src`.
fn source_file(path: &str) -> Option<(&str, &str)> {
    let (name, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let is_test = file.ends_with("tests.rs") || file.contains("/tests/");
    (!is_test && !name.contains('/')).then_some((name, file))
}

/// The modules that a file imports.
fn imports_of(file: &str, text: &str) -> BTreeSet<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or(text);
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    // `a.rs` and `a/mod.rs` are one step below the crate, `a/b.rs` two.
    let depth = file.trim_end_matches("/mod.rs").split('/').count();
    let mut names = BTreeSet::new();
    for root in ["crate::".to_owned(), "super::".repeat(depth)] {
        for (at, _) in code.match_indices(&root) {
            // Part of a longer name or path.
            if !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                names.extend(first_names(&code[at + root.len()..]));
            }
        }
    }
    names
}

/// `a` of `a::b`, and `a` and `c` of `{a::b, c::{d, e}}`.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(list) = path.strip_prefix('{') else { return vec![name(path)] };
    let (mut names, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.extend(Some(name(&list[start..at])).filter(|name| !name.is_empty()));
                start = at + 1;
            }
            _ => {}
        }
        if character == '}' && start == at + 1 {
            break;
        }
    }
    names
}

/// The strongly connected components, largest first.
fn cycles<'a>(graph: &Graph<'a>) -> Vec<Vec<&'a str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|module| (*module, reached(graph, module))).collect();
    let mut found: BTreeSet<Vec<&str>> = BTreeSet::new();
    for module in graph.keys() {
        let cycle: Vec<&str> = graph
            .keys()
            .copied()
            .filter(|other| reach[module].contains(other) && reach[other].contains(module))
            .collect();
        if cycle.len() > 1 {
            found.insert(cycle);
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
    found
}

/// The modules that a module imports, directly or indirectly.
fn reached<'g>(graph: &'g Graph<'_>, from: &str) -> BTreeSet<&'g str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for import in graph.get(module).into_iter().flatten() {
            if seen.insert(import.as_str()) {
                open.push(import);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::{check_with, first_names, imports_of};

    fn sources(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files
            .iter()
            .map(|(path, text)| (format!("crates/a/src/{path}"), (*text).to_owned()))
            .collect()
    }

    #[test]
    fn names_are_found_in_every_form_of_path() {
        assert_eq!(first_names("one::Two;"), ["one"]);
        assert_eq!(first_names("{one::{A, B}, two, three::C};"), ["one", "two", "three"]);
        let text = "use crate::{\n    one,\n    two::A,\n};\nfn f() { crate::three::g(my_crate::four) }\n\
                    // crate::five\n#[cfg(test)]\nmod tests { use crate::six; }";
        assert_eq!(
            imports_of("x.rs", text).into_iter().collect::<Vec<_>>(),
            ["one", "three", "two"]
        );
        assert!(imports_of("x.rs", "use super::y;").contains("y"));
        assert!(imports_of("x/mod.rs", "use super::y;").contains("y"));
        assert!(!imports_of("x/z.rs", "use super::y;").contains("y"));
        assert!(imports_of("x/z.rs", "use super::super::y;").contains("y"));
    }

    #[test]
    fn a_cycle_is_found_and_needs_to_be_allowed_with_its_size() {
        let files = sources(&[
            ("lib.rs", "use crate::one;"),
            ("one.rs", "use crate::two;"),
            ("two/mod.rs", ""),
            ("two/deep.rs", "use crate::three;"),
            ("three.rs", "use super::one;"),
            ("four.rs", "use crate::one;"),
        ]);
        let found = check_with(&files, &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.starts_with("3 modules form an import cycle: one, three, two;"));
        assert!(check_with(&files, &[("a", 3, "reason")]).is_empty());
        assert_eq!(check_with(&files, &[("a", 4, "reason")]).len(), 2);
    }

    #[test]
    fn a_tree_has_no_cycle() {
        let files = sources(&[("one.rs", "use crate::two;"), ("two.rs", "use crate::two::X;")]);
        assert!(check_with(&files, &[]).is_empty());
    }
}
