//! Lets the user write a prompt at the terminal: keys in, the text on the screen, the whole prompt out.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::editor::{Editor, Step};
use crate::input::{Input, Typed};
use crate::screen::Screen;

/// The next prompt; `None` at the end of the input. If the future is dropped, the editor keeps the text so far.
pub(crate) async fn compose(
    mark: &str,
    editor: &mut Editor,
    input: &mut Input,
    screen: &mut Screen,
) -> io::Result<Option<Typed>> {
    if let Some(text) = input.kept_line() {
        screen.said(mark, &text)?;
        return Ok(Some(Typed { text, is_shown: true }));
    }
    let mut resized = signal(SignalKind::window_change())?;
    let mut resumed = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
    let mut writing = input.writing()?;
    let _pastes = screen.take_pastes()?;
    loop {
        let picture = editor.picture(screen.columns()).within(screen.rows().saturating_sub(1));
        screen.draw_prompt(mark, &picture)?;
        let strokes = tokio::select! {
            strokes = writing.next() => strokes,
            _ = resized.recv() => continue,
            // Another program had the terminal meanwhile and may have changed its mode.
            _ = resumed.recv() => {
                writing.resume()?;
                screen.forget_drawn();
                continue;
            }
        };
        let Some(strokes) = strokes else {
            screen.erase()?;
            return Ok(None);
        };
        let mut strokes = strokes.into_iter();
        while let Some(stroke) = strokes.next() {
            match editor.take(stroke) {
                Step::Stay => {}
                Step::Clear => screen.wipe()?,
                Step::End => {
                    screen.erase()?;
                    return Ok(None);
                }
                Step::Done(text) => {
                    // Keys typed after Enter are the beginning of the next prompt.
                    for stroke in strokes {
                        if let Step::Done(text) = editor.take(stroke) {
                            writing.keep_line(text);
                        }
                    }
                    screen.said(mark, &text)?;
                    return Ok(Some(Typed { text, is_shown: true }));
                }
            }
        }
        if let Some(text) = writing.kept_line() {
            screen.said(mark, &text)?;
            return Ok(Some(Typed { text, is_shown: true }));
        }
    }
}
