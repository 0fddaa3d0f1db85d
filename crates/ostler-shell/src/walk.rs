//! Walks the syntax tree and collects what a command would do.

use tree_sitter::{Node, Parser};

use crate::text::{self, Hidden};
use crate::word::{self, Word, WordKind, slice};
use crate::wrap::{self, Starts};
use crate::{
    Assignment, Judged, LONGEST, Part, Redirect, Unclear, builtin, heredoc, literal, table,
};

/// How deep commands may be nested.
const DEEPEST: usize = 120;
/// How deep quoted scripts may be nested.
const MOST_SCRIPTS: usize = 3;

/// Analyses a command that is `scripts` levels deep in quoted scripts.
pub(crate) fn judge(command: &str, scripts: usize) -> Result<Judged, Unclear> {
    let mut walk = Walk { source: command, scripts, found: Judged::default(), unclear: None };
    if let Ok(list) = literal(command) {
        walk.found.redirects = list.redirects;
        list.parts.into_iter().for_each(|part| walk.part(part, 0));
    } else if command.len() > LONGEST {
        walk.unclear("it is too long to be analysed");
    } else if let Some(odd) = text::odd_character(command) {
        walk.unclear(odd);
    } else {
        if text::joins_lines(command) {
            walk.unclear("a word in it continues in the next line");
        }
        walk.parse();
    }
    match walk.unclear {
        None => Ok(walk.found),
        Some(reason) => Err(Unclear { reason, found: Box::new(walk.found) }),
    }
}

struct Walk<'s> {
    source: &'s str,
    scripts: usize,
    found: Judged,
    unclear: Option<String>,
}

impl Walk<'_> {
    /// Records the reason if it is the first one. The walk continues, so that a forbidden part is still found.
    fn unclear(&mut self, reason: impl Into<String>) {
        self.unclear.get_or_insert(reason.into());
    }

    fn parse(&mut self) {
        let mut parser = Parser::new();
        let tree = match parser.set_language(&tree_sitter_bash::LANGUAGE.into()) {
            Ok(()) => parser.parse(self.source, None),
            Err(_) => None,
        };
        let Some(tree) = tree else { return self.unclear("the shell grammar is missing") };
        let root = tree.root_node();
        if root.has_error() {
            self.unclear("it is not a complete shell command");
        }
        let mut covered = 0;
        self.cover(root, &mut covered, 0);
        if self.source.get(covered..).is_none_or(|rest| !is_gap(rest)) {
            self.unclear("its end cannot be parsed");
        }
        if heredoc::share_a_line(root) {
            self.unclear("two here-documents begin on one line");
        }
        self.statement(root, 0);
    }

    /// Checks that every character belongs to a leaf of the tree or to a gap between words.
    fn cover(&mut self, node: Node<'_>, covered: &mut usize, depth: usize) {
        if depth > DEEPEST {
            return self.unclear("it is nested too deeply");
        }
        if node.is_missing() || node.is_error() {
            self.unclear("it is not a complete shell command");
        }
        if node.child_count() == 0 || matches!(node.kind(), "string" | "heredoc_body") {
            let gap = self.source.get(*covered..node.start_byte());
            if node.start_byte() > *covered && gap.is_none_or(|gap| !is_gap(gap)) {
                self.unclear("a part of it cannot be parsed");
            }
            *covered = node.end_byte().max(*covered);
        }
        let mut end = None;
        for child in children(node) {
            // A newline ends a simple command, but the grammar sometimes continues it.
            let gap = end.and_then(|end| self.source.get(end..child.start_byte()));
            if is_on_one_line(node.kind())
                && gap.is_some_and(|gap| gap.replace("\\\n", "").contains('\n'))
            {
                self.unclear("a command continues after the end of its line");
            }
            end = Some(child.end_byte());
            self.cover(child, covered, depth + 1);
        }
    }

    fn all(&mut self, node: Node<'_>, depth: usize) {
        for child in children(node) {
            if child.kind() == "&" {
                self.found.background = true;
            }
            if child.is_named() {
                self.statement(child, depth + 1);
            }
        }
    }

    fn statement(&mut self, node: Node<'_>, depth: usize) {
        if depth > DEEPEST {
            return self.unclear("it is nested too deeply");
        }
        let raw = slice(node, self.source);
        match node.kind() {
            "program"
            | "list"
            | "pipeline"
            | "subshell"
            | "if_statement"
            | "elif_clause"
            | "else_clause"
            | "while_statement"
            | "do_group"
            | "case_statement"
            | "case_item"
            | "negated_command"
            | "redirected_statement"
            | "variable_assignments"
            | "concatenation"
            | "command_name"
            | "command_substitution"
            | "process_substitution"
            | "herestring_redirect" => self.all(node, depth),
            "compound_statement" => {
                if !raw.starts_with("((") && !raw[1..].starts_with([' ', '\t', '\n']) {
                    self.unclear("a pair of braces in it is not a group");
                }
                if raw.starts_with("((") && !text::is_plain_arithmetic(raw) {
                    self.unclear("it evaluates arithmetic with variables, which can run commands");
                }
                self.all(node, depth);
            }
            "for_statement" => {
                self.loop_variable(node);
                self.all(node, depth);
            }
            "function_definition" => {
                self.unclear("it defines a function, which can replace a command");
                self.all(node, depth);
            }
            "array" | "translated_string" => {
                self.unclear("it contains an array or a translated text, which can run commands");
                self.all(node, depth);
            }
            "c_style_for_statement" => {
                self.unclear("it evaluates arithmetic with variables, which can run commands");
                self.all(node, depth);
            }
            "arithmetic_expansion" => {
                if !text::is_plain_arithmetic(&raw.replace(['[', ']'], " ")) {
                    self.unclear("it evaluates arithmetic with variables, which can run commands");
                }
                self.all(node, depth);
            }
            "command" => self.command(node, depth),
            "declaration_command" => self.declaration(node, depth),
            "unset_command" => self.unset(node),
            "variable_assignment" => {
                let assignment = self.assignment(node, false, depth);
                self.found.assignments.push(assignment);
            }
            "file_redirect" => self.redirect(node, depth),
            "heredoc_redirect" => {
                if let Err(reason) = heredoc::check(node, self.source) {
                    self.unclear(reason);
                }
                self.all(node, depth);
            }
            "test_command" => self.test(node, depth),
            "expansion" => {
                if !text::is_plain_expansion(raw) {
                    self.unclear(format!("{raw} can run commands"));
                }
                self.check_rest(node);
                self.all(node, depth);
            }
            "string" | "heredoc_body" => {
                if node.kind() == "string" && (raw.contains("\\$(") || raw.contains("\\`")) {
                    self.unclear("quoted text in it could be run as a command");
                }
                self.check_rest(node);
                self.all(node, depth);
            }
            "binary_expression"
            | "unary_expression"
            | "postfix_expression"
            | "ternary_expression"
            | "parenthesized_expression" => self.all(node, depth),
            "word" | "number" | "extglob_pattern" | "regex" => {
                if matches!(node.kind(), "word" | "number") && !text::is_one_word(raw) {
                    self.unclear("a word in it may become several words");
                }
                if text::hidden(raw) == Hidden::Command {
                    self.unclear("a substitution is hidden in a word");
                }
                self.all(node, depth);
            }
            "simple_expansion" => {
                if raw.contains([' ', '\t', '\n']) {
                    self.unclear("a variable has no name");
                }
            }
            "subscript" => {
                self.unclear("it evaluates an array index, which can run commands");
                self.all(node, depth);
            }
            "comment" => {
                let before =
                    self.source.get(..node.start_byte()).and_then(|text| text.chars().last());
                if before.is_some_and(|c| !c.is_whitespace() && !";&|()".contains(c)) {
                    self.unclear("a `#` in it does not start a comment");
                }
            }
            // A shell that evaluates such text as arithmetic runs it, and there are many ways to make it do so.
            "raw_string" => {
                if raw.contains("$(") || raw.contains('`') {
                    self.unclear("quoted text in it could be run as a command");
                }
            }
            "ansi_c_string"
            | "brace_expression"
            | "variable_name"
            | "special_variable_name"
            | "string_content"
            | "test_operator"
            | "file_descriptor"
            | "heredoc_start"
            | "heredoc_content"
            | "heredoc_end" => {}
            other => self.unclear(format!("it contains a {}", other.replace('_', " "))),
        }
    }

    /// Checks that the text around substitutions does not contain others that the tree does not show.
    fn check_rest(&mut self, node: Node<'_>) {
        let mut at = node.start_byte() + if node.kind() == "expansion" { 2 } else { 0 };
        let mut rest = String::new();
        for child in children(node).into_iter().filter(|child| is_substitution(child.kind())) {
            rest.push_str(self.source.get(at..child.start_byte()).unwrap_or_default());
            rest.push(' ');
            at = child.end_byte();
        }
        rest.push_str(self.source.get(at..node.end_byte()).unwrap_or_default());
        let outside_quotes = node.kind() == "expansion";
        let rest = if outside_quotes { rest } else { word::no_process(&rest) };
        if text::hidden(&rest) == Hidden::Command && !heredoc::is_literal_body(node, self.source) {
            self.unclear("a substitution is hidden in quoted text");
        }
    }

    fn command(&mut self, node: Node<'_>, depth: usize) {
        let mut argv = Vec::new();
        let mut assignments = Vec::new();
        let mut end = None;
        for child in children(node) {
            let is_word = !child.kind().ends_with("_redirect");
            if is_word && end == Some(child.start_byte()) {
                self.unclear("two words in it may be one word");
            }
            end = is_word.then_some(child.end_byte());
            match child.kind() {
                "variable_assignment" => assignments.push(self.assignment(child, true, depth)),
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" | "comment" => {
                    self.statement(child, depth + 1);
                }
                // In bash this is a syntax error or the start of a function.
                "subshell" => {
                    self.unclear("it contains a misplaced parenthesis");
                    self.statement(child, depth + 1);
                }
                _ => {
                    argv.push(word::read(child, self.source));
                    if child.is_named() {
                        self.statement(child, depth + 1);
                    }
                }
            }
        }
        let source = slice(node, self.source).to_owned();
        self.part(Part { argv, assignments, source, only_starts: false }, depth);
    }

    fn part(&mut self, mut part: Part, depth: usize) {
        if depth > DEEPEST {
            return self.unclear("it is nested too deeply");
        }
        match part.argv.first() {
            None => return self.unclear("a command has no name"),
            Some(name) if name.kind != WordKind::Literal => {
                return self
                    .unclear(format!("the name of the command {} is not literal", name.text));
            }
            Some(name) if name.text.is_empty() || table::RESERVED.contains(&name.text.as_str()) => {
                return self.unclear(format!("\"{}\" is not a command", name.text));
            }
            Some(_) => {}
        }
        if let Some(reason) = builtin::doubt(&part) {
            self.unclear(reason);
        }
        match wrap::starts(&mut part) {
            Starts::Nothing => self.found.parts.push(part),
            Starts::Unclear(reason) => {
                self.found.parts.push(part);
                self.unclear(reason);
            }
            Starts::Parts(inner) => {
                self.found.parts.push(part);
                for inner in inner {
                    self.part(inner, depth + 1);
                }
            }
            Starts::Script(script) => {
                self.found.parts.push(part);
                self.script(&script);
            }
        }
    }

    fn script(&mut self, script: &str) {
        if self.scripts >= MOST_SCRIPTS {
            return self.unclear("it nests too many scripts in quoted text");
        }
        let inner = match judge(script, self.scripts + 1) {
            Ok(inner) => inner,
            Err(Unclear { reason, found }) => {
                self.unclear(reason);
                *found
            }
        };
        self.found.parts.extend(inner.parts);
        self.found.redirects.extend(inner.redirects);
        self.found.assignments.extend(inner.assignments);
        self.found.background |= inner.background;
    }

    fn assignment(&mut self, node: Node<'_>, exported: bool, depth: usize) -> Assignment {
        let name = node.child_by_field_name("name");
        let value = node.child_by_field_name("value");
        if name.is_none_or(|name| name.kind() != "variable_name") {
            self.unclear("it evaluates an array index, which can run commands");
        }
        self.all(node, depth);
        let name = name.map(|name| slice(name, self.source).to_owned()).unwrap_or_default();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.chars().all(is_name) || name.starts_with(|c: char| c.is_ascii_digit()) {
            self.unclear(format!("{name} is not a variable name"));
        }
        if !table::is_plain_variable(&name) {
            self.unclear(format!("the effect of the variable {name} is unclear"));
        }
        let value = value.map_or(Word::literal(""), |value| word::read(value, self.source));
        Assignment { name, value, exported }
    }

    /// Checks the variable of a loop: `for PATH in …` and `select` set it like an assignment.
    fn loop_variable(&mut self, node: Node<'_>) {
        let name = node.child_by_field_name("variable").map(|name| slice(name, self.source));
        match name {
            Some(name) if table::is_plain_variable(name) => {}
            _ => self.unclear("the effect of a loop's variable is unclear"),
        }
    }

    /// `export`, `declare`, `local`, `readonly`.
    fn declaration(&mut self, node: Node<'_>, depth: usize) {
        for child in children(node).into_iter().skip(1) {
            let raw = slice(child, self.source);
            match child.kind() {
                "variable_assignment" => {
                    let assignment = self.assignment(child, true, depth);
                    self.found.assignments.push(assignment);
                }
                "variable_name" if table::is_plain_variable(raw) => {}
                "word" if matches!(raw, "-x" | "-r" | "-g") => {}
                // `-n` makes a reference to a variable, `-i` evaluates arithmetic.
                _ => {
                    self.unclear(format!("the effect of the declaration {raw} is unclear"));
                    self.statement(child, depth + 1);
                }
            }
        }
    }

    fn unset(&mut self, node: Node<'_>) {
        for child in children(node).into_iter().skip(1) {
            let raw = slice(child, self.source);
            if child.kind() != "variable_name" || !table::is_plain_variable(raw) {
                self.unclear(format!("the effect of unsetting {raw} is unclear"));
            }
        }
    }

    fn redirect(&mut self, node: Node<'_>, depth: usize) {
        // `{name}<file` sets a variable, but for the grammar the name is a word.
        let before = self.source.get(..node.start_byte()).and_then(|text| text.chars().last());
        let descriptor = node.child_by_field_name("descriptor");
        let is_number = descriptor.is_none_or(|descriptor| {
            slice(descriptor, self.source).chars().all(|c| c.is_ascii_digit())
        });
        if before.is_some_and(|c| !c.is_whitespace() && !";&|()".contains(c)) || !is_number {
            self.unclear("a redirection in it directly follows a word");
        }
        let operator = children(node).into_iter().find(|child| !child.is_named());
        let operator = operator.map_or("", |operator| operator.kind());
        let destinations = node.child_by_field_name("destination");
        let Some(target) = destinations else {
            if !matches!(operator, ">&-" | "<&-") {
                self.unclear("a redirection has no target");
            }
            return;
        };
        let n_targets = children(node).iter().filter(|child| child.is_named()).count();
        let has_descriptor = node.child_by_field_name("descriptor").is_some();
        if n_targets != 1 + usize::from(has_descriptor) {
            self.unclear("a redirection has more than one target");
        }
        self.statement(target, depth + 1);
        let target = word::read(target, self.source);
        let is_number = target.kind == WordKind::Literal
            && (target.text == "-" || target.text.chars().all(|c| c.is_ascii_digit()));
        match operator {
            ">&" | "<&" if is_number => {}
            "<" | "<&" | "<&-" => self.found.redirects.push(Redirect { writes: false, target }),
            ">" | ">>" | "&>" | "&>>" | ">|" | ">&" => {
                self.found.redirects.push(Redirect { writes: true, target });
            }
            other => self.unclear(format!("the redirection {other} is unknown")),
        }
    }

    /// `[ … ]` and `[[ … ]]`: they only compare, unless they evaluate arithmetic or redirect.
    fn test(&mut self, node: Node<'_>, depth: usize) {
        let raw = slice(node, self.source);
        let double = raw.starts_with("[[");
        let (open, close) = if double { ("[[", "]]") } else { ("[", "]") };
        let inside = raw.strip_prefix(open).and_then(|raw| raw.strip_suffix(close));
        let blank = |c: char| matches!(c, ' ' | '\t' | '\n');
        if inside.is_none_or(|inside| !inside.starts_with(blank) || !inside.ends_with(blank)) {
            self.unclear("a bracket in it is not a test");
        }
        if !double && raw.contains(['<', '>', '\n', ';', '&', '|', '(']) {
            self.unclear("a test in it is too complicated");
        }
        if !double && !is_plain_test(node, self.source) {
            self.unclear("a test in it is too complicated");
        }
        let computes = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
        let mut words = raw.split_ascii_whitespace();
        if words.any(|word| word == "-v" || word == "-R" || (double && computes.contains(&word))) {
            self.unclear("its test evaluates arithmetic with variables, which can run commands");
        }
        self.all(node, depth);
    }
}

/// `[ -f x ]` and `[ a = b ]`. Unquoted expansions could add operators, and `-v` evaluates an index.
fn is_plain_test(node: Node<'_>, source: &str) -> bool {
    const UNARY: &[&str] = &["-f", "-d", "-e", "-r", "-w", "-x", "-s", "-L", "-h", "-n", "-z"];
    const BINARY: &[&str] =
        &["=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];
    let inside: Vec<_> = children(node).into_iter().filter(Node::is_named).collect();
    let [expression] = inside.as_slice() else { return false };
    let words = children(*expression);
    let text = |node: &Node<'_>| slice(*node, source);
    let is_operand = |node: &Node<'_>| {
        matches!(node.kind(), "string" | "raw_string" | "word" | "number")
            && !text(node).starts_with('-')
    };
    match words.as_slice() {
        [operator, operand] => UNARY.contains(&text(operator)) && is_operand(operand),
        [left, operator, right] => {
            is_operand(left) && BINARY.contains(&text(operator)) && is_operand(right)
        }
        _ => false,
    }
}

fn children(node: Node<'_>) -> Vec<Node<'_>> {
    (0..node.child_count()).filter_map(|index| node.child(index)).collect()
}

/// Nodes that cannot contain a newline outside quotes.
fn is_on_one_line(kind: &str) -> bool {
    matches!(
        kind,
        "command"
            | "command_name"
            | "concatenation"
            | "declaration_command"
            | "file_redirect"
            | "herestring_redirect"
            | "negated_command"
            | "redirected_statement"
            | "unset_command"
            | "variable_assignment"
            | "variable_assignments"
    )
}

fn is_substitution(kind: &str) -> bool {
    matches!(
        kind,
        "command_substitution"
            | "process_substitution"
            | "expansion"
            | "simple_expansion"
            | "arithmetic_expansion"
            | "string"
            | "raw_string"
            | "concatenation"
    )
}

/// Whether this text separates words. A backslash and a newline alone join them, which the grammar does not know.
fn is_gap(text: &str) -> bool {
    let rest = text.replace("\\\n", "");
    rest.chars().all(|c| matches!(c, ' ' | '\t' | '\n')) && (text.is_empty() || !rest.is_empty())
}
