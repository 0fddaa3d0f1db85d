//! One attack: a script that prints ESCAPED if it works, or changes something outside.

use ostler_sandbox::Layers;

use crate::stage::Stage;

pub(crate) const NONE: Layers = Layers { namespaces: false, landlock: false, seccomp: false };
pub(crate) const ONLY_NAMESPACES: Layers = Layers { namespaces: true, ..NONE };
pub(crate) const NO_NAMESPACES: Layers = Layers { namespaces: false, ..Layers::ALL };
pub(crate) const NO_SECCOMP: Layers = Layers { seccomp: false, ..Layers::ALL };
pub(crate) const ONLY_SECCOMP: Layers = Layers { seccomp: true, ..NONE };
pub(crate) const ONLY_LANDLOCK: Layers = Layers { landlock: true, ..NONE };

/// An attack, and the layers with which it works: without them the test could not fail.
pub(crate) struct Probe {
    /// The row of the list of attacks.
    pub(crate) row: u8,
    pub(crate) script: &'static str,
    pub(crate) works_with: Layers,
    /// Whether only root can do it outside a sandbox.
    pub(crate) needs_root: bool,
}

impl Probe {
    pub(crate) const fn new(row: u8, works_with: Layers, script: &'static str) -> Self {
        Self { row, script, works_with, needs_root: false }
    }

    pub(crate) const fn of_root(row: u8, works_with: Layers, script: &'static str) -> Self {
        Self { row, script, works_with, needs_root: true }
    }

    /// Runs it in the whole sandbox, where it must fail, and in a weaker one, where it must work. Returns what is wrong.
    fn finding(&self) -> Option<String> {
        let Self { row, script, works_with, .. } = self;
        let (text, escaped) = self.attempt(Layers::ALL);
        if escaped {
            return Some(format!("row {row}: {script}\nescaped: {text}"));
        }
        if self.needs_root && !rustix::process::geteuid().is_root() {
            return None;
        }
        let (text, escaped) = self.attempt(*works_with);
        (!escaped).then(|| format!("row {row}: {script}\nfails with {works_with:?} too: {text}"))
    }

    /// What it printed, and whether it worked.
    fn attempt(&self, layers: Layers) -> (String, bool) {
        let stage = Stage::new();
        let before = stage.outside();
        let output = stage.run(layers, self.script);
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        let after = stage.outside();
        let escaped = printed.contains("ESCAPED") || after != before;
        (format!("{printed}\n{}\n", output.status), escaped)
    }
}

pub(crate) fn check(probes: &[Probe]) {
    let findings: Vec<String> = probes.iter().filter_map(Probe::finding).collect();
    assert!(findings.is_empty(), "{}", findings.join("\n\n"));
    println!("{} attacks, none worked", probes.len());
}

/// Runs them with fewer layers, with which they must fail too.
pub(crate) fn check_with(layers: Layers, probes: &[Probe]) {
    for probe in probes {
        let (text, escaped) = probe.attempt(layers);
        assert!(!escaped, "row {}: {}\nescaped with {layers:?}: {text}", probe.row, probe.script);
    }
}
