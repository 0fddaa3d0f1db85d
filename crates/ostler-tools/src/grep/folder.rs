//! Searches a folder: the first files one by one, then on all cores. The report is the same.

use parking_lot::Mutex;
use std::path::Path;

use grep_regex::RegexMatcher;
use grep_searcher::Searcher;
use ignore::DirEntry;
use ostler_engine::tool::{ToolCx, ToolError, ToolOutput};

use super::report::{Hits, Report};
use super::{Args, searcher, walk};
use crate::path::CallPath;
use crate::walk::{self as walking, Stop};

/// What to search in a folder.
pub(super) struct Folder<'a> {
    pub(super) cx: &'a ToolCx,
    pub(super) root: &'a CallPath,
    pub(super) args: &'a Args,
    pub(super) stop: &'a Stop,
    pub(super) matcher: &'a RegexMatcher,
}

/// How many files are searched one by one before all cores are used: a search for lines ends as soon as it has
/// enough, and most folders are small.
const FIRST_FILES: usize = 500;
/// The most lines that are kept until all files are searched.
const MAX_HELD_LINES: usize = 100_000;

pub(super) fn search(folder: &Folder<'_>) -> Result<ToolOutput, ToolError> {
    let (mut report, mut is_whole) = in_order(folder, FIRST_FILES)?;
    if !is_whole {
        (report, is_whole) = on_all_cores(folder)?;
    }
    if !is_whole {
        // With this many lines the report is full before long.
        (report, _) = in_order(folder, usize::MAX)?;
    }
    Ok(report.output())
}

/// Searches file by file. Also returns whether all files were searched.
fn in_order<'a>(folder: &Folder<'a>, most: usize) -> Result<(Report<'a>, bool), ToolError> {
    let Folder { cx, root, args, stop, matcher } = *folder;
    let mut searcher = searcher(args);
    let mut report = Report::new(&cx.cwd, args, false);
    let mut n_files = 0;
    for entry in walk(&root.written, args)?.sort_by_file_path(Path::cmp).build().flatten() {
        if stop.is_due() {
            report.give_up();
            break;
        }
        if !walking::is_file(&entry) {
            continue;
        }
        n_files += 1;
        if n_files > most {
            return Ok((report, false));
        }
        // Before the search: whether there are matches reveals something about the contents.
        if !cx.may_show(entry.path()) {
            report.leave_out();
        } else {
            let (hits, is_ok) = hits_in(&mut searcher, matcher, (entry.path(), root), &report);
            report.add(entry.path(), hits, is_ok);
        }
        if report.is_full() {
            break;
        }
    }
    Ok((report, true))
}

/// Searches on all cores and reports in the order of the paths. Also returns whether all lines could be kept.
fn on_all_cores<'a>(folder: &Folder<'a>) -> Result<(Report<'a>, bool), ToolError> {
    let Folder { cx, root, args, stop, matcher } = *folder;
    let mut report = Report::new(&cx.cwd, args, false);
    let found = Mutex::new((Vec::new(), 0_usize, 0_usize));
    let is_complete = walking::in_parallel(&walk(&root.written, args)?, stop, || {
        let (mut searcher, matcher) = (searcher(args), matcher.clone());
        let (report, found) = (&report, &found);
        move |entry: DirEntry| {
            if !walking::is_file(&entry) {
                return true;
            }
            let may_show = cx.may_show(entry.path());
            let searched =
                may_show.then(|| hits_in(&mut searcher, &matcher, (entry.path(), root), report));
            let mut found = found.lock();
            match searched {
                None => found.2 += 1,
                Some((hits, true)) if hits.is_empty() => {}
                Some((hits, is_ok)) => {
                    found.1 += hits.n_lines();
                    found.0.push((entry.into_path(), hits, is_ok));
                }
            }
            found.1 <= MAX_HELD_LINES
        }
    });
    let (mut files, n_lines, n_guarded) = found.into_inner();
    if n_lines > MAX_HELD_LINES {
        return Ok((report, false));
    }
    files.sort_by(|left, right| left.0.cmp(&right.0));
    for (path, hits, is_ok) in files {
        if report.is_full() {
            break;
        }
        report.add(&path, hits, is_ok);
    }
    (0..n_guarded).for_each(|_| report.leave_out());
    if !is_complete {
        report.give_up();
    }
    Ok((report, true))
}

/// The lines of a file at or below a root that match, and whether it could be searched.
pub(super) fn hits_in(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    (path, root): (&Path, &CallPath),
    report: &Report<'_>,
) -> (Hits, bool) {
    let mut hits = report.file(path);
    let file = walking::real_path(root, path).and_then(|real| real.open_listed().ok());
    let searched = file.map(|file| searcher.search_file(matcher, &file, &mut hits));
    (hits, searched.is_some_and(|searched| searched.is_ok()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Mutants: `on_all_cores` does not sort; it adds no file after the first.
    #[test]
    fn all_cores_report_the_same_as_one_after_another() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..300 {
            let sub = folder.path().join(format!("d{}", n % 7)).join(format!("e{}", n % 3));
            std::fs::create_dir_all(&sub).unwrap();
            let text =
                if n % 4 == 0 { format!("one {n}\ntwo\none again\n") } else { "none\n".into() };
            std::fs::write(sub.join(format!("f{n}.txt")), text).unwrap();
        }
        let cx = ToolCx { cwd: folder.path().to_owned(), ..ToolCx::default() };
        let root = CallPath::of(&cx, folder.path().to_owned()).unwrap();
        for more in [
            json!({"output_mode": "content"}),
            json!({"output_mode": "content", "-A": 1, "head_limit": 10_000}),
            json!({"output_mode": "content", "head_limit": 3, "offset": 5}),
            json!({"output_mode": "count"}),
            json!({}),
        ] {
            let mut args = more.clone();
            args["pattern"] = json!("^one");
            let args: Args = serde_json::from_value(args).unwrap();
            let matcher = super::super::matcher(&args).unwrap();
            let stop = Stop::new(tokio_util::sync::CancellationToken::new());
            let it = Folder { cx: &cx, root: &root, args: &args, stop: &stop, matcher: &matcher };
            let (one, all) = (in_order(&it, usize::MAX).unwrap(), on_all_cores(&it).unwrap());
            assert!(one.1 && all.1);
            assert_eq!(one.0.output(), all.0.output(), "{more}");
        }
        assert!(
            !in_order(
                &Folder {
                    cx: &cx,
                    root: &root,
                    args: &serde_json::from_value(json!({"pattern": "x"})).unwrap(),
                    stop: &Stop::new(tokio_util::sync::CancellationToken::new()),
                    matcher: &RegexMatcher::new("x").unwrap()
                },
                299
            )
            .unwrap()
            .1
        );
    }
}
