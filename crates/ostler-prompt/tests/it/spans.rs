//! Runs and tools as `tracing` spans, with OpenTelemetry's names.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use ostler_prompt::Session;
use ostler_testkit::{Script, Usage, reply, when};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

use crate::fake::prompt;
use crate::stage::{Stage, within};

/// A span that has ended: its parent's name, and its fields.
#[derive(Clone, Debug, Default)]
struct Ended {
    parent: Option<&'static str>,
    fields: BTreeMap<&'static str, String>,
}

impl Visit for Ended {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

/// Collects spans as they end.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Ended>>>);

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collector {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let mut ended = Ended { parent: span.parent().map(|it| it.name()), ..Ended::default() };
        attributes.record(&mut ended);
        span.extensions_mut().insert(ended);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        values.record(span.extensions_mut().get_mut::<Ended>().unwrap());
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        let ended = span.extensions().get::<Ended>().unwrap().clone();
        if span.metadata().target().starts_with("ostler_prompt") {
            self.0.lock().unwrap().push(ended);
        }
    }
}

/// The spans of a run, in the order in which they end.
async fn spans(script: Script) -> Vec<Ended> {
    let collector = Collector::default();
    // Everything runs on the one thread of the test.
    let subscriber = tracing_subscriber::registry().with(collector.clone());
    let guard = tracing::subscriber::set_default(subscriber);
    let stage = Stage::new(script).await;
    let _ = within(stage.adapter().evaluate(&prompt::<()>("go"), &Session::new())).await;
    drop(guard);
    collector.0.lock().unwrap().clone()
}

fn check(span: &Ended, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(span.fields.get(name).map(String::as_str), Some(*value), "{name} of {span:?}");
    }
}

#[tokio::test]
async fn a_run_and_its_tools_are_spans() {
    let script = Script::new()
        .rule(
            when().turn(0),
            reply().tool_use("Bash", json!({"command": "echo hello"})).usage(Usage::tokens(60, 40)),
        )
        .rule(when(), reply().text("Done.").usage(Usage::tokens(15, 5)));
    let spans = spans(script).await;
    let [tool, run] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!(tool.parent, Some("invoke_agent"));
    check(
        tool,
        &[
            ("otel.name", "execute_tool Bash"),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "Bash"),
            ("gen_ai.tool.type", "function"),
        ],
    );
    assert!(tool.fields["gen_ai.tool.call.id"].starts_with("toolu_"));
    check(
        run,
        &[
            ("otel.name", "invoke_agent test/prompt"),
            ("gen_ai.operation.name", "invoke_agent"),
            ("gen_ai.provider.name", "anthropic"),
            ("gen_ai.agent.name", "test/prompt"),
            ("gen_ai.request.model", crate::stage::MODEL),
            ("gen_ai.usage.input_tokens", "75"),
            ("gen_ai.usage.output_tokens", "45"),
            ("gen_ai.response.finish_reasons", "end_turn"),
        ],
    );
    assert_eq!(run.fields.get("error.type"), None);
    // Texts are not in the spans.
    assert!(!format!("{spans:?}").contains("hello"), "{spans:?}");
}

#[tokio::test]
async fn failures_are_marked_in_their_spans() {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Read", json!({"file_path": "/no/such/file"})))
        .rule(when(), reply().status(ostler_testkit::Status::new(400)));
    let spans = spans(script).await;
    check(&spans[0], &[("error.type", "tool_error"), ("otel.status_code", "ERROR")]);
    check(&spans[1], &[("error.type", "api"), ("otel.status_code", "ERROR")]);
}
