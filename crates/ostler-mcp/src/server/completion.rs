//! Suggestions for the arguments of prompts and templates (`completion/complete`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Catalog;
use crate::rpc::Failure;

/// How many suggestions one answer may have, by the specification.
const MOST_VALUES: usize = 100;

type Complete = dyn Fn(&str) -> Vec<String> + Send + Sync;

/// Functions that complete arguments, by the argument's name.
#[derive(Clone, Default)]
pub(super) struct Completions(BTreeMap<String, Arc<Complete>>);

impl Completions {
    pub(super) fn insert(
        &mut self,
        argument: String,
        complete: impl Fn(&str) -> Vec<String> + Send + Sync + 'static,
    ) {
        self.0.insert(argument, Arc::new(complete));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn of(&self, argument: &str) -> Option<Arc<Complete>> {
        self.0.get(argument).cloned()
    }
}

impl fmt::Debug for Completions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The function for a request, if the argument has one.
pub(super) fn find(catalog: &Catalog, params: &Value) -> Result<Option<Arc<Complete>>, Failure> {
    let argument = params["argument"]["name"].as_str().unwrap_or_default();
    let reference = &params["ref"];
    let text = |key: &str| reference[key].as_str().unwrap_or_default();
    let completions = match text("type") {
        "ref/prompt" => {
            let name = text("name");
            let found = catalog.prompts.iter().find(|prompt| prompt.name() == name);
            found.map(super::Prompt::completions).ok_or(format!("there is no prompt `{name}`"))
        }
        "ref/resource" => {
            let uri = text("uri");
            let found = catalog.resources.iter().find(|resource| resource.pattern() == uri);
            found.map(super::Resource::completions).ok_or(format!("there is no template `{uri}`"))
        }
        _ => Err("`params.ref.type` must be ref/prompt or ref/resource".to_owned()),
    };
    completions.map(|completions| completions.of(argument)).map_err(Failure::invalid_params)
}

/// The answer with these suggestions.
pub(super) fn answer(mut values: Vec<String>) -> Value {
    let total = values.len();
    values.truncate(MOST_VALUES);
    let has_more = total > values.len();
    json!({"completion": {"values": values, "total": total, "hasMore": has_more}})
}
