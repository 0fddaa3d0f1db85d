//! Lists of permission rules and of tools, as arguments have them.

use super::ToolSet;

impl ToolSet {
    /// The tools that an argument names.
    pub fn read<'a>(lists: impl IntoIterator<Item = &'a str>) -> Self {
        let names = split_rules(lists);
        match names.iter().any(|name| name == "default") {
            true => Self::Default,
            false => Self::Only(names),
        }
    }
}

/// Splits lists of rules at commas and blanks outside parentheses.
///
/// ```
/// use ostler_proto::launch::split_rules;
///
/// assert_eq!(split_rules(["Read,Bash(git log:*) Grep"]), ["Read", "Bash(git log:*)", "Grep"]);
/// ```
pub fn split_rules<'a>(lists: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut rules = vec![String::new()];
    for list in lists {
        let mut depth = 0_usize;
        for character in list.chars() {
            match character {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                ',' | ' ' if depth == 0 => {
                    rules.push(String::new());
                    continue;
                }
                _ => {}
            }
            if let Some(rule) = rules.last_mut() {
                rule.push(character);
            }
        }
        rules.push(String::new());
    }
    rules.retain(|rule| !rule.is_empty());
    rules
}
