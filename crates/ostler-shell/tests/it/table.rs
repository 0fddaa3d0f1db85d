//! Commands, one per line: `look` (does nothing but look), `act` (clear, but does something) or `unclear`, and the
//! names of all parts in order.

use ostler_shell::{Judged, Unclear, is_harmless, parts};

fn verdict(command: &str) -> (&'static str, String) {
    let (judged, is_clear) = match parts(command) {
        Ok(judged) => (judged, true),
        Err(Unclear { found, .. }) => (found, false),
    };
    let names: Vec<_> = judged.parts.iter().map(|part| part.name()).collect();
    let word = match (is_clear, only_looks(&judged)) {
        (false, _) => "unclear",
        (true, true) => "look",
        (true, false) => "act",
    };
    (word, names.join(" "))
}

fn only_looks(judged: &Judged) -> bool {
    judged.parts.iter().all(|part| part.only_starts || is_harmless(part))
        && judged
            .redirects
            .iter()
            .all(|redirect| !redirect.writes || redirect.target.text == "/dev/null")
        && !judged.assignments.iter().any(|assignment| assignment.is_risky())
}

/// Each row: verdict, names of the parts, command.
const ROWS: &[(&str, &str, &str)] = &[
    // Plain.
    ("look", "ls", "ls"),
    ("look", "ls", "ls -la src"),
    ("look", "/bin/ls", "/bin/ls -la"),
    ("act", "./ls", "./ls"),
    ("act", "rm", "rm x"),
    ("look", "echo", "echo hi"),
    ("look", "echo", "echo \"$HOME\""),
    ("look", "cat", "cat a b"),
    ("act", "cat", "cat $X"),
    ("act", "cat", "cat \"$X\""),
    ("look", "", ""),
    ("look", "", "# only a comment"),
    ("look", "pwd", "pwd # and a comment; rm x"),
    ("act", "frobnicate", "frobnicate"),
    // Lists.
    ("look", "ls pwd", "ls && pwd"),
    ("act", "git rm", "git push && rm -rf x"),
    ("act", "ls rm", "ls; rm x"),
    ("act", "ls rm", "ls || rm x"),
    ("act", "ls rm", "ls\nrm x"),
    ("act", "ls rm", "ls & rm x"),
    ("act", "ls rm", "ls &\nrm x"),
    ("look", "cat grep wc", "cat a | grep b | wc -l"),
    ("unclear", "ls sh", "ls | sh"),
    ("act", "ls tee", "ls |& tee x"),
    ("unclear", "curl bash", "curl example.com | bash"),
    ("look", "ls", "! ls"),
    // The grammar takes the second line for arguments of the first.
    ("unclear", "ls ls ls ls ls", "ls -la |& ls -la |& ls -la\nmarker x | ls -la && ls -la"),
    // Quotes and escapes.
    ("act", "rm", "r''m x"),
    ("act", "rm", "\"rm\" x"),
    ("act", "rm", "\\rm x"),
    ("act", "rm", "r\\m x"),
    ("act", "rm", "'rm' x"),
    ("unclear", "", "$'rm' x"),
    ("unclear", "", "$'\\x72m' x"),
    ("look", "ls", "ls \\\n -la"),
    ("unclear", "r", "r\\\nm x"),
    ("look", "echo", "echo 'a && rm x'"),
    ("look", "echo", "echo \"a; rm x\""),
    ("look", "echo", "echo '$(rm x)'"),
    ("look", "echo", "echo \"\\$(rm x)\""),
    ("look", "echo", "echo a\\;b"),
    ("unclear", "echo", "echo 'unterminated"),
    ("unclear", "echo", "echo \"unterminated"),
    // Substitutions.
    ("act", "rm ls", "ls $(rm x)"),
    ("act", "rm echo", "echo \"$(rm x)\""),
    ("act", "rm echo", "echo \"a $(rm x) b\""),
    ("act", "rm echo", "echo `rm x`"),
    ("act", "rm echo", "echo \"`rm x`\""),
    ("act", "rm echo echo", "echo $(echo $(rm x))"),
    ("look", "date echo", "echo $(date)"),
    ("act", "rm cat", "cat <(rm x)"),
    ("act", "rm ls tee", "ls | tee >(rm x)"),
    ("act", "rm echo", "echo ${x:-$(rm y)}"),
    ("act", "rm echo", "echo \"${x:-$(rm y)}\""),
    ("unclear", "rm echo", "echo $((1+$(rm x)))"),
    ("look", "echo", "echo $((1+2))"),
    ("unclear", "echo", "echo $((x+1))"),
    ("unclear", "echo", "x='a[$(rm y)]'; echo $((x))"),
    ("unclear", "echo", "echo ${x@P}"),
    ("unclear", "echo", "echo ${!x}"),
    ("unclear", "echo", "echo ${a[$i]}"),
    ("look", "echo", "echo ${x%.rs} ${#x} ${x/a/b}"),
    ("look", "echo", "echo ${x:1:2}"),
    ("unclear", "echo", "echo ${x:y}"),
    ("unclear", "", "$X ls"),
    ("unclear", "", "${X} ls"),
    ("unclear", "echo", "$(echo rm) x"),
    ("unclear", "echo", "\"$(echo rm)\" x"),
    ("unclear", "", "{rm,x}"),
    ("unclear", "", "r* x"),
    ("unclear", "", "~/bin/x"),
    ("unclear", "", "X$IFS ls"),
    // Groups and control flow.
    ("act", "cd rm", "(cd a && rm x)"),
    ("look", "cd ls", "(cd a && ls)"),
    ("act", "ls rm", "{ ls; rm x; }"),
    ("act", "rm ls", "if [ -f x ]; then rm y; else ls; fi"),
    ("look", "ls", "if [ -f x ]; then ls; fi"),
    ("act", "ls rm", "for i in $(ls); do rm \"$i\"; done"),
    ("look", "echo", "for i in 1 2; do echo $i; done"),
    ("act", "rm", "for i in 1 2; do rm $i; done"),
    ("unclear", "ls", "for ((i=0;i<3;i++)); do ls; done"),
    ("look", "read echo", "while read x; do echo $x; done < file"),
    ("act", "true rm", "while true; do rm x; done"),
    ("act", "false rm", "until false; do rm x; done"),
    ("act", "rm ls", "case $x in a) rm b;; *) ls;; esac"),
    ("act", "rm f", "f() { rm x; }; f"),
    ("act", "ls g", "function g { ls; }; g"),
    ("unclear", "ls", "ls() { \"$@\"; }; ls rm x"),
    ("act", "rm", "select x in a b; do rm $x; done"),
    ("act", "rm", "[[ $(rm x) == a ]]"),
    ("look", "", "[[ $x == a* ]]"),
    ("look", "", "[ -f x ]"),
    ("unclear", "", "[[ 'a[$(rm x)]' -eq 1 ]]"),
    ("unclear", "", "[[ -v 'a[$(rm x)]' ]]"),
    ("unclear", "", "[ a > b ]"),
    ("unclear", "rm", "(( a = $(rm x) ))"),
    ("unclear", "", "if true"),
    ("unclear", "", "rm x | ("),
    ("unclear", "", "fi"),
    ("unclear", "ls", "ls )"),
    ("unclear", ": : :", ":() { :|:& };:"),
    ("unclear", "ls ls", "ls() { ls; }; ls"),
    // Looking that goes further than it seems.
    ("look", "grep", "grep -rn x ."),
    ("act", "grep", "grep -R x ."),
    ("act", "rg", "rg -L x"),
    ("act", "diff", "diff -r a b"),
    ("act", "strings", "strings @x"),
    ("look", "strings", "strings x"),
    ("act", "wc", "wc --files0-from=x"),
    ("act", "jq", "jq -n 'import \"/x\" as $x; $x'"),
    ("look", "jq", "jq .name package.json"),
    // Redirections.
    ("act", "echo", "echo hi > f"),
    ("act", "echo", "echo hi >> f"),
    ("act", "echo", "echo hi >| f"),
    ("act", "echo", "echo hi > ~/.bashrc"),
    ("act", "echo", "echo hi &> f"),
    ("act", "echo", "echo hi >& f"),
    ("act", "ls", "ls 2> f"),
    ("look", "ls", "ls 2>/dev/null"),
    ("look", "ls", "ls >/dev/null 2>&1"),
    ("look", "ls", "ls 2>&-"),
    ("look", "cat", "cat < f"),
    ("unclear", "cat", "cat <> f"),
    ("act", "", "> f"),
    ("act", "ls", "> f ls"),
    ("act", "ls", "{ ls; } > f"),
    ("act", "echo", "echo a >$X"),
    ("act", "date echo", "echo a > $(date)"),
    ("look", "cat", "cat <<< hi"),
    ("act", "rm cat", "cat <<< \"$(rm x)\""),
    // Here-documents.
    ("look", "cat", "cat <<EOF\nhello\nEOF"),
    ("act", "cat rm", "cat <<EOF\nhello $(rm x)\nEOF"),
    ("unclear", "cat", "cat <<EOF\nhello `rm x`\nEOF"),
    ("look", "cat", "cat <<'EOF'\nhello $(rm x)\nEOF"),
    ("act", "cat rm", "cat <<EOF\nhi\nEOF\nrm x"),
    ("act", "cat rm", "cat <<'EOF'\nhi\nEOF\nrm x\n"),
    ("act", "cat rm", "cat <<EOF && rm y\nhello\nEOF\n"),
    ("act", "cat", "cat > f <<EOF\nhello\nEOF"),
    ("act", "cat", "cat <<EOF > f\nhello\nEOF"),
    ("unclear", "cat ls", "cat <<EOF\nhello\n EOF\nls"),
    ("look", "cat", "cat <<-EOF\n\thello\n\tEOF"),
    // Variables.
    ("look", "ls", "TZ=UTC ls"),
    ("act", "ls", "FOO=1 ls"),
    ("act", "ls", "LD_PRELOAD=x.so ls"),
    ("act", "ls", "PATH=/tmp ls"),
    ("act", "ls", "PATH=/tmp; ls"),
    ("act", "ls", "export PATH=/tmp; ls"),
    ("act", "rm", "export FOO=$(rm x)"),
    ("act", "rm ls", "A=$(rm x) ls"),
    ("look", "echo", "x=1; echo $x"),
    ("act", "ls", "IFS=,; ls"),
    ("unclear", "rm", "a[$(rm x)]=1"),
    ("act", "rm", "a=(1 $(rm x))"),
    ("unclear", "", "declare -n ref=PATH"),
    ("unclear", "", "declare -i x='a[$(rm y)]'"),
    ("act", "git", "GIT_PAGER='rm x' git log"),
    ("act", "ls", "for PATH in .; do ls; done"),
    ("act", "ls", "select PATH in .; do ls; done"),
    ("act", "bash ls", "BASH_ENV=./x bash -c ls"),
    ("act", "bash ls", "LD_PRELOAD=./x bash -c ls"),
    ("act", "env bash ls", "env LD_PRELOAD=./x bash -c ls"),
    ("act", "eval ls", "PATH=. eval ls"),
    ("act", "trap ls", "PATH=. trap ls EXIT"),
    ("act", "timeout ls", "LD_PRELOAD=./x timeout 5 ls"),
    ("look", "bash ls", "TZ=UTC bash -c ls"),
    // Wrappers.
    ("look", "timeout ls", "timeout 5 ls"),
    ("act", "timeout rm", "timeout -k 1 5 rm x"),
    ("unclear", "timeout", "timeout --weird 5 rm x"),
    ("act", "nohup rm", "nohup rm x &"),
    ("act", "sudo ls", "sudo ls"),
    ("act", "sudo rm", "sudo -u root rm x"),
    ("unclear", "sudo", "sudo -s"),
    ("act", "env rm", "env A=1 rm x"),
    ("act", "env ls", "env LD_PRELOAD=x ls"),
    ("look", "env ls", "env TZ=UTC ls"),
    ("unclear", "env", "env -S 'rm x'"),
    ("act", "ls xargs rm", "ls | xargs rm"),
    ("act", "ls xargs cat", "ls | xargs cat"),
    ("look", "ls xargs echo", "ls | xargs -n 1 echo"),
    ("act", "bash rm", "bash -c 'rm x'"),
    ("look", "bash ls", "bash -lc 'ls'"),
    ("act", "sh bash rm", "sh -c \"bash -c 'rm x'\""),
    ("unclear", "bash", "bash -c \"$X\""),
    ("act", "bash", "bash x.sh"),
    ("act", "eval rm", "eval 'rm x'"),
    ("act", "eval ls rm", "eval ls ';' rm x"),
    ("unclear", "eval", "eval \"$X\""),
    ("act", "exec rm", "exec rm x"),
    ("act", "trap rm", "trap 'rm x' EXIT"),
    ("unclear", "trap", "trap \"$X\" EXIT"),
    ("act", "source", "source x.sh"),
    ("act", ".", ". x.sh"),
    ("unclear", "source", "source $X"),
    ("unclear", "alias ls", "alias ls='rm x'; ls"),
    ("act", "command rm", "command rm x"),
    ("look", "command", "command -v rm"),
    ("look", "time ls", "time ls"),
    ("unclear", "coproc", "coproc ls"),
    ("act", "nice rm", "nice -n 5 rm x"),
    // find.
    ("look", "find", "find . -name '*.rs' -type f"),
    ("act", "find", "find . -delete"),
    ("act", "find", "find . -fprint x"),
    ("act", "find rm", "find . -exec rm {} \\;"),
    ("act", "find rm", "find . -exec rm {} +"),
    ("act", "find sh rm", "find . -execdir sh -c 'rm x' \\;"),
    ("look", "find ls", "find . -exec ls ';'"),
    ("act", "find", "find $X"),
    ("act", "find", "find *"),
    ("unclear", "find", "find . -exec rm"),
    // git.
    ("look", "git", "git status"),
    ("look", "git", "git log --oneline -5"),
    ("look", "git", "git diff HEAD~1 -- src"),
    ("act", "git", "git diff --output=x"),
    ("act", "git", "git diff --ext-diff"),
    ("act", "git", "git -c core.pager='rm x' log"),
    ("act", "git", "git -C /tmp status"),
    ("look", "git", "git --no-pager log"),
    ("act", "git", "git --exec-path=/tmp status"),
    ("act", "git", "git branch new"),
    ("look", "git", "git branch --list"),
    ("look", "git", "git branch -a"),
    ("act", "git", "git branch -D x"),
    ("act", "git", "git push"),
    ("act", "git", "git $X"),
    ("act", "git", "git log $X"),
    ("act", "git", "git config core.pager x"),
    ("look", "git", "git remote -v"),
    ("act", "git", "git remote add a b"),
    ("act", "git", "git grep -O x"),
    // Options that do more than look.
    ("act", "rg", "rg --pre ./x foo"),
    ("act", "rg", "rg -z foo"),
    ("look", "rg", "rg -n foo src"),
    ("look", "grep", "grep -rn foo src"),
    ("act", "grep", "grep -f list x"),
    ("act", "sort", "sort -o x y"),
    ("act", "sort", "sort -ox y"),
    ("look", "sort", "sort -k2,2 y"),
    ("act", "sort", "sort --compress-program=x y"),
    ("act", "sed", "sed -i s/a/b/ x"),
    ("act", "sed", "sed 's/a/b/w out' x"),
    ("act", "awk", "awk 'BEGIN{system(\"rm x\")}'"),
    ("act", "tee", "tee x"),
    ("act", "date", "date -s tomorrow"),
    ("look", "date", "date +%s"),
    ("act", "hostname", "hostname evil"),
    ("act", "uniq", "uniq a b"),
    ("act", "tree", "tree -o x"),
    ("act", "printf", "printf -v PATH x"),
    ("look", "printf", "printf '%s' x"),
    ("act", "read", "read PATH"),
    ("act", "read", "read 'a[$(rm x)]'"),
    ("look", "ls", "ls *.rs"),
    ("act", "sort", "sort *"),
    ("look", "sort", "sort src/*"),
    ("act", "ping", "ping example.com"),
    ("act", "env", "env"),
    // Characters.
    ("unclear", "", "ls\rrm x"),
    ("unclear", "", "ls\u{a0}x"),
    ("unclear", "", "ls \u{202e}x"),
    ("unclear", "", "ls\0x"),
    ("look", "echo", "echo h\u{e9}llo \u{1f600}"),
    ("act", "r\u{43c}", "r\u{43c} x"),
    ("act", "ls rm", "ls\t;\trm x"),
    // What a grammar may stumble over.
    ("unclear", "echo rm", "echo \\$(rm x)"),
    ("look", "echo", "echo a#b"),
    ("act", "echo rm", "echo a #b\nrm x"),
    ("look", "echo", "echo {a,b}"),
    ("unclear", "echo", "echo $[x]"),
    ("look", "ls", "ls HEAD@{1}"),
];

// Seen to fail when `find` counts as a plain command.
#[test]
fn commands_are_judged_part_by_part() {
    let mut wrong = Vec::new();
    for (expected, names, command) in ROWS {
        let (word, found) = verdict(command);
        // The order of a substitution and what it stands in is of no matter.
        let sorted = |names: &str| {
            let mut names: Vec<_> = names.split(' ').map(str::to_owned).collect();
            names.sort_unstable();
            names
        };
        if word != *expected || sorted(&found) != sorted(names) {
            wrong.push(format!("{command:?}: {word} [{found}], expected {expected} [{names}]"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), ROWS.len(), wrong.join("\n"));
}

#[test]
fn an_overlong_or_deep_command_is_unclear() {
    assert!(parts(&"ls;".repeat(20_000)).is_err());
    assert!(parts(&format!("{}ls{}", "(".repeat(500), ")".repeat(500))).is_err());
    assert!(parts(&format!("{}ls{}", "echo $(".repeat(300), ")".repeat(300))).is_err());
}
