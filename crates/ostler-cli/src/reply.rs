//! A line that the user writes in reply to a question.

use std::io;

use crate::compose::compose;
use crate::editor::Editor;
use crate::input::Input;
use crate::screen::Screen;
use crate::tty::Mode;

/// The next line of the input, also one that was typed ahead; `None` at the end of the input.
pub(crate) async fn answered(
    question: &str,
    input: &mut Input,
    screen: &mut Screen,
) -> io::Result<Option<String>> {
    screen.prompt(question)?;
    let Some(typed) = input.line().await else {
        screen.echo("(no answer)")?;
        return Ok(None);
    };
    if !typed.is_shown {
        screen.echo(&typed.text)?;
    }
    Ok(Some(typed.text))
}

/// The text that the user writes at the terminal from now on. Lines typed before are kept for the next prompt. `None`
/// if the user ends the input.
pub(crate) async fn written(
    question: &str,
    input: &mut Input,
    screen: &mut Screen,
) -> io::Result<Option<String>> {
    if !screen.is_live() {
        let _shown = Mode::shown()?;
        screen.prompt(question)?;
        return Ok(input.fresh_line().await);
    }
    screen.line(question)?;
    let before = input.put_aside();
    let typed = compose(">", &mut Editor::default(), input, screen).await;
    input.take_back(before);
    Ok(typed?.map(|typed| typed.text))
}
