//! Which files a text imports: words that begin with `@`, except inside code.

/// The paths a text imports.
pub(super) fn imports(text: &str) -> Vec<&str> {
    let mut imports = Vec::new();
    let mut in_fence = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            in_fence = !in_fence;
        } else if !in_fence {
            // Every other piece between backticks is code.
            let prose = line.split('`').step_by(2).flat_map(str::split_whitespace);
            let paths = prose.filter_map(|word| word.strip_prefix('@'));
            imports.extend(
                paths
                    .map(|path| path.trim_end_matches([',', ';', ':', ')', '.']))
                    .filter(|path| !path.is_empty()),
            );
        }
    }
    imports
}
