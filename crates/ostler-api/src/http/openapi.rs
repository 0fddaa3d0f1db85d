//! Routes and their descriptions in one list, so that each route has a description.

use axum::Router;
use axum::http::Method;
use axum::routing::MethodRouter;
use ostler_base::error::ErrorBody;
use ostler_core::app::App;
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

type Make = fn(&mut SchemaGenerator) -> Value;

/// One operation, as the document describes it.
pub(crate) struct Op {
    method: Method,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    parameters: Vec<fn(&mut SchemaGenerator) -> Vec<Value>>,
    body: Option<RequestBody>,
    answers: Vec<(u16, &'static str, Content)>,
    is_public: bool,
}

/// The body of a request.
struct RequestBody {
    schema: Make,
    is_required: bool,
}

/// The content of a response.
enum Content {
    Nothing,
    Json(Make),
    Text(&'static str),
    Events(&'static [&'static str]),
}

impl Op {
    pub(crate) fn get(path: &'static str, id: &'static str, summary: &'static str) -> Self {
        Self::new(Method::GET, path, id, summary)
    }

    pub(crate) fn post(path: &'static str, id: &'static str, summary: &'static str) -> Self {
        Self::new(Method::POST, path, id, summary)
    }

    pub(crate) fn put(path: &'static str, id: &'static str, summary: &'static str) -> Self {
        Self::new(Method::PUT, path, id, summary)
    }

    pub(crate) fn patch(path: &'static str, id: &'static str, summary: &'static str) -> Self {
        Self::new(Method::PATCH, path, id, summary)
    }

    pub(crate) fn delete(path: &'static str, id: &'static str, summary: &'static str) -> Self {
        Self::new(Method::DELETE, path, id, summary)
    }

    fn new(method: Method, path: &'static str, id: &'static str, summary: &'static str) -> Self {
        let (parameters, answers) = (Vec::new(), Vec::new());
        Self { method, path, id, summary, parameters, body: None, answers, is_public: false }
    }

    /// Needs no authentication.
    pub(crate) fn public(mut self) -> Self {
        self.is_public = true;
        self
    }

    /// The query parameters: the fields of a type.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        self.parameters.push(query_parameters::<T>);
        self
    }

    /// Accepts `If-Match`: the request fails if the resource has changed.
    pub(crate) fn if_match(mut self) -> Self {
        self.parameters.push(|_| {
            let schema = json!({"type": "string"});
            vec![json!({"name": "If-Match", "in": "header", "required": false, "schema": schema})]
        });
        self
    }

    /// The required body of the request.
    pub(crate) fn takes<T: JsonSchema>(mut self) -> Self {
        let schema: Make = |make| make.subschema_for::<T>().to_value();
        self.body = Some(RequestBody { schema, is_required: true });
        self
    }

    /// The optional body of the request.
    pub(crate) fn may_take<T: JsonSchema>(mut self) -> Self {
        let schema: Make = |make| make.subschema_for::<T>().to_value();
        self.body = Some(RequestBody { schema, is_required: false });
        self
    }

    /// A response with JSON.
    pub(crate) fn returns<T: JsonSchema>(mut self, status: u16, what: &'static str) -> Self {
        let make: Make = |make| make.subschema_for::<T>().to_value();
        self.answers.push((status, what, Content::Json(make)));
        self
    }

    /// A response that is not JSON.
    pub(crate) fn returns_text(
        mut self,
        status: u16,
        kind: &'static str,
        what: &'static str,
    ) -> Self {
        self.answers.push((status, what, Content::Text(kind)));
        self
    }

    /// A stream of events with numbers and JSON; of these kinds, or without kinds.
    pub(crate) fn returns_events(
        mut self,
        status: u16,
        kinds: &'static [&'static str],
        what: &'static str,
    ) -> Self {
        self.answers.push((status, what, Content::Events(kinds)));
        self
    }

    /// A response without content.
    pub(crate) fn returns_nothing(mut self, status: u16, what: &'static str) -> Self {
        self.answers.push((status, what, Content::Nothing));
        self
    }

    fn described(&self, make: &mut SchemaGenerator) -> Value {
        let mut parameters = path_parameters(self.path);
        parameters.extend(self.parameters.iter().flat_map(|list| list(make)));
        let mut described = json!({
            "operationId": self.id,
            "summary": self.summary,
            "parameters": parameters,
            "responses": self.responses(make),
        });
        if self.is_public {
            described["security"] = json!([]);
        }
        if let Some(RequestBody { schema, is_required }) = &self.body {
            let content = json!({"application/json": {"schema": schema(make)}});
            described["requestBody"] = json!({"required": is_required, "content": content});
        }
        described
    }

    fn responses(&self, make: &mut SchemaGenerator) -> Value {
        let mut responses = Map::new();
        for (status, what, content) in &self.answers {
            let mut response = json!({"description": what});
            match content {
                Content::Nothing => {}
                Content::Json(schema) => {
                    response["content"] = json!({"application/json": {"schema": schema(make)}});
                }
                Content::Text(kind) => {
                    response["content"] = json!({(*kind): {"schema": {"type": "string"}}});
                }
                Content::Events(kinds) => {
                    response["content"] = json!({"text/event-stream": {"schema": event(kinds)}});
                }
            }
            responses.insert(status.to_string(), response);
        }
        let body = make.subschema_for::<ErrorBody>().to_value();
        let content = json!({"application/json": {"schema": body}});
        let refused = json!({"description": "Refused; the body says why", "content": content});
        responses.insert("4XX".to_owned(), refused.clone());
        responses.insert("503".to_owned(), refused.clone());
        responses.insert("507".to_owned(), refused);
        Value::Object(responses)
    }
}

/// One event of a stream. Readers of such documents apply the schema to each event.
fn event(kinds: &[&str]) -> Value {
    let data = json!({
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"type": "object"},
    });
    let id = json!({"type": "string", "pattern": "^[1-9][0-9]*$"});
    let mut event = json!({"type": "object", "required": ["id", "data"], "properties": {"id": id, "data": data}});
    if !kinds.is_empty() {
        event["properties"]["event"] = json!({"enum": kinds});
        event["required"] = json!(["id", "event", "data"]);
    }
    event
}

fn query_parameters<T: JsonSchema>(make: &mut SchemaGenerator) -> Vec<Value> {
    let schema = make.root_schema_for::<T>().to_value();
    let fields = schema.get("properties").and_then(Value::as_object).cloned();
    let parameter = |(name, schema): (String, Value)| json!({"name": name, "in": "query", "required": false, "schema": without_null(schema)});
    fields.unwrap_or_default().into_iter().map(parameter).collect()
}

/// A missing parameter is absent, never `null`.
fn without_null(mut schema: Value) -> Value {
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    }
    schema
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let is_server = path.contains("/mcp-servers/{name}");
    let parameter = |name| {
        let mut schema = json!({"type": "string", "minLength": 1, "maxLength": 128});
        if is_server && name == "name" {
            schema["maxLength"] = json!(64);
            schema["pattern"] = json!("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$");
        }
        json!({"name": name, "in": "path", "required": true, "schema": schema})
    };
    names.map(parameter).collect()
}

/// The routes so far.
pub(crate) struct Api {
    router: Router<App>,
    paths: Map<String, Value>,
    make: SchemaGenerator,
}

impl Api {
    pub(crate) fn new() -> Self {
        let settings = SchemaSettings::draft2020_12()
            .with(|settings| settings.definitions_path = "/components/schemas".into());
        Self { router: Router::new(), paths: Map::new(), make: settings.into_generator() }
    }

    /// Adds a route with its description.
    #[must_use]
    pub(crate) fn on(mut self, op: Op, handler: MethodRouter<App>) -> Self {
        self.router = self.router.route(op.path, handler);
        self.describe(op)
    }

    /// Describes a route that is defined elsewhere.
    #[must_use]
    pub(crate) fn describe(mut self, op: Op) -> Self {
        let path = self.paths.entry(op.path).or_insert_with(|| json!({}));
        path[op.method.as_str().to_lowercase()] = op.described(&mut self.make);
        self
    }

    /// Returns the routes, and the document.
    pub(crate) fn finish(mut self) -> (Router<App>, Value) {
        let schemas = self.make.take_definitions(true);
        let document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Ostler",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Agents at work: sessions, runs, tasks and approvals on one log of events.",
            },
            "security": [{"token": []}],
            "paths": self.paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
        });
        (self.router, document)
    }
}
