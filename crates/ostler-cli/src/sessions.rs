//! `ostler sessions`.

use std::time::{Duration, SystemTime};

use ostler::engine::sessions;

use crate::args::Args;
use crate::scene;
use crate::screen::Screen;
use crate::text::clean;

/// Lists the newest sessions.
pub(crate) fn list(
    args: &Args,
    all: bool,
    limit: usize,
    screen: &mut Screen,
) -> anyhow::Result<()> {
    let scene = scene::of(args)?;
    let projects = sessions::projects(&scene)?;
    let limit = if limit == 0 { usize::MAX } else { limit };
    let (sessions, n_more) = projects.newest((!all).then_some(scene.cwd.as_path()), limit);
    if sessions.is_empty() {
        return Ok(screen.line("no sessions yet")?);
    }
    let now = SystemTime::now();
    for session in sessions {
        let age = now.duration_since(session.modified).unwrap_or_default();
        let folder = session.cwd.filter(|_| all).map(|folder| format!("{folder}: "));
        let summary = clean(&format!("{}{}", folder.unwrap_or_default(), session.summary));
        let line = format!("{}  {:>8}  {}", session.id, ago(age), summary.replace('\n', " "));
        screen.line(&screen.one_line(&line))?;
    }
    if n_more > 0 {
        screen.line(&format!("… and {n_more} older: ostler sessions --limit 0 lists all"))?;
    }
    screen.hint("Resume one: ostler --resume ID (its beginning is enough), or the newest: ostler --continue")?;
    Ok(())
}

/// A time span for people.
fn ago(age: Duration) -> String {
    match age.as_secs() {
        0..60 => "just now".to_owned(),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        for (seconds, text) in
            [(0, "just now"), (59, "just now"), (60, "1 min"), (7_199, "1 h"), (200_000, "2 d")]
        {
            assert_eq!(ago(Duration::from_secs(seconds)), text);
        }
    }
}
