//! Plans how a reply is delivered: the exact bytes, pauses and faults, in order. No IO, no clock.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::events::{Event, events_of, message_start};
use crate::interruption::{Action, Disorder};
use crate::message::Message;
use crate::reply::Reply;

/// One step of delivering a response body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Let this much time pass.
    Wait(Duration),
    /// Wait until the gate of this name is open.
    Gate(String),
    /// Send nothing more, ever.
    Stall,
    /// Break the connection.
    Cut,
}

/// The steps that stream a message.
pub(crate) fn stream_steps(reply: &Reply, message: &Message) -> Vec<Step> {
    let mut events = events_of(message);
    if reply.missing_message_stop {
        events.pop();
    }
    let mut plan = StreamPlan { reply, message, steps: Vec::new() };
    plan.run(events);
    plan.steps
}

/// The steps that send a message whole: first the actions that are possible without events, then the body.
pub(crate) fn whole_steps(reply: &Reply, message: &Message) -> Vec<Step> {
    let body = message.whole().to_string().into_bytes();
    let half = body[..body.len() / 2].to_vec();
    let mut steps = Vec::new();
    for interruption in &reply.interruptions {
        match &interruption.action {
            Action::Gate(name) => steps.push(Step::Gate(name.clone())),
            Action::Stall => return [steps, vec![Step::Stall]].concat(),
            Action::Cut => return [steps, vec![Step::Send(half), Step::Cut]].concat(),
            Action::MalformedJson => return [steps, vec![Step::Send(half)]].concat(),
            _ => {}
        }
    }
    steps.push(Step::Send(body));
    steps
}

struct StreamPlan<'a> {
    reply: &'a Reply,
    message: &'a Message,
    steps: Vec<Step>,
}

impl StreamPlan<'_> {
    fn run(&mut self, mut events: Vec<Event>) {
        let total = events.len();
        for position in 0..=total {
            for interruption in &self.reply.interruptions {
                if interruption.after_events.min(total) == position
                    && self.interrupt(&interruption.action, &mut events, position).is_break()
                {
                    return;
                }
            }
            let Some(event) = events.get(position).cloned() else { break };
            self.pace(position);
            self.send(&event.encode());
            // The API sends a ping when the first block has started.
            if position == 1
                && event.name() == "content_block_start"
                && !self.reply.ping_between_events
            {
                self.send(&Event::ping().encode());
            }
        }
    }

    /// Performs an action before the event at `position`.
    fn interrupt(
        &mut self,
        action: &Action,
        events: &mut [Event],
        position: usize,
    ) -> ControlFlow<()> {
        match action {
            Action::Stall => return self.end(Some(Step::Stall)),
            Action::Cut => return self.end(Some(Step::Cut)),
            Action::End => return self.end(None),
            Action::ErrorEvent { error_type, message } => {
                self.send(&Event::error(error_type, message).encode());
                return self.end(None);
            }
            Action::Gate(name) => self.steps.push(Step::Gate(name.clone())),
            Action::Ping => self.send(&Event::ping().encode()),
            Action::Raw(text) => self.send(text),
            Action::MalformedJson => {
                self.send("event: content_block_delta\ndata: {\"type\": \"content_blo\n\n")
            }
            Action::MalformedSse => {
                self.send("<<< not a field >>>\n\u{0}\nevent ping\nevent: ping\ndata: {\"type\":\n")
            }
            Action::OutOfOrder(disorder) => self.disorder(*disorder, events, position),
        }
        ControlFlow::Continue(())
    }

    fn disorder(&mut self, disorder: Disorder, events: &mut [Event], position: usize) {
        // One past the last block: no block of this message has that index.
        let unknown = self.message.blocks.len();
        let stray = match disorder {
            Disorder::DeltaWithoutStart => Event::block_delta(
                unknown,
                &serde_json::json!({"type": "text_delta", "text": "stray"}),
            ),
            Disorder::StopWithoutStart => Event::block_stop(unknown),
            Disorder::EarlyMessageStop => Event::message_stop(),
            Disorder::SecondMessageStart => message_start(self.message),
            Disorder::SwapNextTwo => {
                if position + 1 < events.len() {
                    events.swap(position, position + 1);
                }
                return;
            }
        };
        self.send(&stray.encode());
    }

    /// Adds the pause and the ping between two events.
    fn pace(&mut self, position: usize) {
        if position == 0 {
            return;
        }
        if self.reply.delay_between_events_ms > 0 {
            self.steps.push(Step::Wait(Duration::from_millis(self.reply.delay_between_events_ms)));
        }
        if self.reply.ping_between_events {
            self.send(&Event::ping().encode());
        }
    }

    fn send(&mut self, text: &str) {
        match self.reply.chunk_bytes {
            None => self.steps.push(Step::Send(text.as_bytes().to_vec())),
            Some(size) => {
                self.steps.extend(
                    text.as_bytes().chunks(size.get()).map(|chunk| Step::Send(chunk.to_vec())),
                );
            }
        }
    }

    fn end(&mut self, last: Option<Step>) -> ControlFlow<()> {
        self.steps.extend(last);
        ControlFlow::Break(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Ids;
    use crate::reply::reply;
    use serde_json::json;

    fn steps(reply: &Reply) -> Vec<Step> {
        let message = Message::compose(reply, &json!({"model": "m"}), &Ids::default());
        stream_steps(reply, &message)
    }

    /// Compares the steps, one name each: the name of an event, or of another action.
    fn check(reply: Reply, expected: &str) {
        let names: Vec<String> = steps(&reply)
            .into_iter()
            .map(|step| match step {
                Step::Send(bytes) => {
                    let text = String::from_utf8(bytes).unwrap();
                    let name =
                        text.strip_prefix("event: ").and_then(|rest| rest.split('\n').next());
                    name.map_or(format!("raw:{}", text.len()), str::to_owned)
                }
                Step::Wait(duration) => format!("wait:{}", duration.as_millis()),
                Step::Gate(name) => format!("gate:{name}"),
                Step::Stall => "STALL".to_owned(),
                Step::Cut => "CUT".to_owned(),
            })
            .collect();
        let short = names.join(" ").replace("content_block_", "").replace("message_", "m_");
        assert_eq!(short, expected);
    }

    fn hello() -> Reply {
        reply().text_pieces(["hello"])
    }

    #[test]
    fn a_plain_reply_has_the_documented_order_of_events() {
        check(hello(), "m_start start ping delta stop m_delta m_stop");
        check(reply(), "m_start m_delta m_stop");
    }

    #[test]
    fn stall_cut_end_and_error_end_the_stream_at_their_position() {
        check(hello().stall(1), "m_start STALL");
        check(hello().cut(3), "m_start start ping delta CUT");
        check(hello().interrupt(0, Action::End), "");
        check(hello().interrupt(2, Action::overloaded()), "m_start start ping error");
        check(hello().cut(99), "m_start start ping delta stop m_delta m_stop CUT");
        check(hello().missing_message_stop(), "m_start start ping delta stop m_delta");
    }

    #[test]
    fn inserted_events_do_not_move_later_interruptions() {
        let reply = hello()
            .interrupt(1, Action::Ping)
            .gate(1, "a")
            .interrupt(2, Action::Raw("xyz".into()))
            .gate(3, "b");
        check(reply, "m_start ping gate:a start ping raw:3 delta gate:b stop m_delta m_stop");
    }

    #[test]
    fn pauses_and_pings_come_only_between_events() {
        let reply = reply().ping_between_events().delay_between_events_ms(5);
        check(reply, "m_start wait:5 ping m_delta wait:5 ping m_stop");
    }

    #[test]
    fn disorder_inserts_or_swaps_events() {
        let out_of_order = |disorder| hello().interrupt(1, Action::OutOfOrder(disorder));
        check(out_of_order(Disorder::SwapNextTwo), "m_start delta start stop m_delta m_stop");
        check(
            out_of_order(Disorder::DeltaWithoutStart),
            "m_start delta start ping delta stop m_delta m_stop",
        );
        check(
            out_of_order(Disorder::StopWithoutStart),
            "m_start stop start ping delta stop m_delta m_stop",
        );
        check(
            out_of_order(Disorder::EarlyMessageStop),
            "m_start m_stop start ping delta stop m_delta m_stop",
        );
        check(
            out_of_order(Disorder::SecondMessageStart),
            "m_start m_start start ping delta stop m_delta m_stop",
        );
    }

    #[test]
    fn small_chunks_contain_the_same_bytes() {
        let whole = |steps: Vec<Step>| -> Vec<u8> {
            steps
                .into_iter()
                .flat_map(|step| if let Step::Send(bytes) = step { bytes } else { Vec::new() })
                .collect()
        };
        let text = || reply().text("añ日本🎉");
        let chunked = steps(&text().chunk_bytes(3));
        assert!(chunked.iter().all(|step| matches!(step, Step::Send(bytes) if bytes.len() <= 3)));
        assert_eq!(whole(chunked), whole(steps(&text())));
    }
}
