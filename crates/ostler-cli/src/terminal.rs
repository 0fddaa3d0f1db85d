//! The user at the terminal: input, screen, and answers to the engine's questions.

use std::io;
use std::path::PathBuf;

use ostler::engine::always::AlwaysRules;
use ostler::{Answers, CancellationToken, Decision, Elicited};
use ostler_proto::ToolUseId;
use tokio::sync::oneshot;

use crate::elicitation;
use crate::input::Input;
use crate::permission::{self, Asking};
use crate::question;
use crate::session::Question;
use crate::show::Show;
use crate::signals::{Signals, StopRequest};

/// The terminal, or the pipes in its place.
pub(crate) struct Terminal<'a> {
    pub(crate) input: Input,
    pub(crate) signals: Signals,
    pub(crate) show: Show<'a>,
    /// Whether there is a user to answer.
    pub(crate) can_ask: bool,
    pub(crate) cwd: PathBuf,
    pub(crate) kept: Option<AlwaysRules>,
}

impl Terminal<'_> {
    /// Asks the user the engine's question. Returns a signal if one arrives before the answer.
    pub(crate) async fn answer(
        &mut self,
        question: Question,
    ) -> anyhow::Result<Option<StopRequest>> {
        match question {
            Question::Permission(request, reply) => {
                let call = request.tool_use_id.clone();
                let cancelled = request.cancelled.clone();
                let asked = match self.can_ask {
                    false => Asked::Answered(Decision::deny(permission::NOBODY)),
                    true => {
                        self.asks_about(call.as_ref());
                        let is_nested = self.show.is_nested(call.as_ref());
                        let Self { input, signals, show, cwd, kept, .. } = self;
                        let (screen, kept) = (&mut *show.screen, kept.as_ref());
                        let at = Asking { input, screen, cwd, kept, is_nested };
                        let answer = permission::ask(&request.question, at);
                        first(answer, signals, &cancelled).await?
                    }
                };
                self.settle(asked, call.as_ref(), reply)
            }
            Question::Agent(request, reply) => {
                let call = request.question.tool_use_id.clone();
                let asked = match self.can_ask {
                    false => Asked::Answered(Answers::decline(permission::NOBODY)),
                    true => {
                        self.asks_about(call.as_ref());
                        let Self { input, signals, show, .. } = self;
                        let answer = question::ask(&request.questions, input, show.screen);
                        first(answer, signals, &request.cancelled).await?
                    }
                };
                self.settle(asked, call.as_ref(), reply)
            }
            Question::Server(request, reply) => {
                let asked = match self.can_ask {
                    false => Asked::Answered(Elicited::decline()),
                    true => {
                        let Self { input, signals, show, .. } = self;
                        let answer = elicitation::ask(&request.question, input, show.screen);
                        first(answer, signals, &request.cancelled).await?
                    }
                };
                self.settle(asked, None, reply)
            }
        }
    }

    /// The user is asked about a call; at a terminal the preview shows its change.
    fn asks_about(&mut self, call: Option<&ToolUseId>) {
        if self.input.is_terminal {
            self.show.asked(call);
        }
    }

    /// Passes the answer on. If the engine has withdrawn the question meanwhile, the answer is dropped.
    fn settle<A>(
        &mut self,
        asked: Asked<A>,
        call: Option<&ToolUseId>,
        reply: oneshot::Sender<A>,
    ) -> anyhow::Result<Option<StopRequest>> {
        if let Asked::Withdrawn { was_shown: true } = asked {
            self.show.screen.remark("the question has been withdrawn or answered elsewhere")?;
        }
        if self.can_ask {
            self.show.answered(call)?;
        }
        match asked {
            Asked::Answered(answer) => _ = reply.send(answer),
            Asked::Withdrawn { .. } => {}
            Asked::Signal(signal) => return Ok(Some(signal)),
        }
        Ok(None)
    }
}

/// How a question ended.
enum Asked<A> {
    Answered(A),
    /// The engine withdrew the question.
    Withdrawn {
        was_shown: bool,
    },
    /// A signal arrived first.
    Signal(StopRequest),
}

/// Waits for the user's answer, a signal, or the engine's withdrawal.
async fn first<A>(
    answer: impl Future<Output = io::Result<A>>,
    signals: &mut Signals,
    cancelled: &CancellationToken,
) -> io::Result<Asked<A>> {
    if cancelled.is_cancelled() {
        return Ok(Asked::Withdrawn { was_shown: false });
    }
    Ok(tokio::select! {
        answer = answer => Asked::Answered(answer?),
        signal = signals.next() => Asked::Signal(signal),
        () = cancelled.cancelled() => Asked::Withdrawn { was_shown: true },
    })
}
