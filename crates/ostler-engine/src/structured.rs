//! `StructuredOutput`: the model gives its answer as JSON that fits the host's schema.
//!
//! The host's schema is the tool's schema. An answer that fits ends the turn; one that does not goes back to the model
//! with the errors, a bounded number of times.

use std::sync::Arc;

use serde_json::Value;

use crate::model::ToolSpec;
use crate::schema::Schema;
use crate::tool::{AnyTool, Effect, Prepared, ToolCx, ToolError, ToolOutput};

/// The name the model calls it by.
pub(crate) const NAME: &str = crate::model::STRUCTURED_OUTPUT;

/// The tool, made for one schema.
pub(crate) struct StructuredOutput {
    schema: Value,
    validator: Schema,
}

impl StructuredOutput {
    /// The tool for a schema.
    ///
    /// # Errors
    /// When it is not a schema, or not one of an object.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        // A tool's input is always an object, so an answer of another type could never be given.
        let kind = schema.get("type").and_then(Value::as_str);
        if kind.is_some_and(|kind| kind != "object") {
            return Err(format!(
                "the answer's schema is of type {}; it must be an object",
                kind.unwrap_or("?")
            ));
        }
        Ok(Self { schema: schema.clone(), validator: Schema::new(schema)? })
    }
}

impl AnyTool for StructuredOutput {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description:
                "Gives the final answer in the required shape. Call it exactly once, at the end."
                    .to_owned(),
            input_schema: self.schema.clone(),
        }
    }

    fn without_host_only(&self, input: &Value) -> Value {
        input.clone()
    }

    fn prepare(self: Arc<Self>, _: &ToolCx, input: &Value) -> Result<Prepared, String> {
        let answer = input.clone();
        let run = move |_: ToolCx| -> crate::tool::RunFuture {
            Box::pin(async move { self.check(&answer) })
        };
        Ok(Prepared { effect: Effect::Nothing, run: Box::new(run) })
    }
}

impl StructuredOutput {
    fn check(&self, answer: &Value) -> Result<ToolOutput, ToolError> {
        let errors = self.validator.errors(answer);
        if errors.is_empty() {
            return Ok(ToolOutput::new("Structured output provided successfully", answer));
        }
        Err(ToolError::Refused(format!(
            "Output does not match required schema: {}",
            errors.join(", ")
        )))
    }
}
