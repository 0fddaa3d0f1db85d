//! Requests that need several rounds: a server without sessions (MCP 2026-07-28) cannot ask a question while a request
//! runs. It answers the request with its questions instead, and the client repeats the request with the answers.

use serde_json::{Map, Value};

use super::Error;
use super::dispatch::REFUSED;
use super::elicitation::{self, MOST_QUESTIONS};
use super::options::CallOptions;
use super::session::Session;

/// How many times a server may ask for more input in one request.
const MOST_ROUNDS: usize = 10;

impl Session {
    /// Sends a request, answers the server's questions about it, and returns the result. `what` is for error messages.
    pub(super) async fn request(
        &self,
        what: &str,
        method: &str,
        mut params: Value,
        options: CallOptions,
    ) -> Result<Value, Error> {
        if !self.shared().is_stateless() {
            return self.exchange(what, method, params, options).await;
        }
        for _ in 0..MOST_ROUNDS {
            let result = self.exchange(what, method, params.clone(), options.clone()).await?;
            if result["resultType"] != "input_required" {
                return Ok(result);
            }
            let answers = self.answers(what, &result, &options).await?;
            let Some(params) = params.as_object_mut() else { return Ok(result) };
            // The state is the server's own: it is returned as it came.
            for (key, value) in [
                ("inputResponses", answers.map(Value::Object)),
                ("requestState", result.get("requestState").cloned()),
            ] {
                match value {
                    Some(value) => params.insert(key.to_owned(), value),
                    None => params.remove(key),
                };
            }
        }
        Err(self.malformed(what, format!("it asked for more input {MOST_ROUNDS} times")))
    }

    /// The answers to the questions of one round, if it has questions.
    async fn answers(
        &self,
        what: &str,
        result: &Value,
        options: &CallOptions,
    ) -> Result<Option<Map<String, Value>>, Error> {
        let Some(questions) = result["inputRequests"].as_object() else { return Ok(None) };
        if questions.len() > MOST_QUESTIONS {
            let reason = format!("it asked {} questions at once", questions.len());
            return Err(self.malformed(what, reason));
        }
        let shared = self.shared();
        let cancelled = async {
            match &options.cancellation {
                Some(token) => token.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let answering = async {
            let mut answers = Map::new();
            for (key, question) in questions {
                let method = question["method"].as_str().unwrap_or_default();
                let options = &shared.options;
                let answer = match method {
                    "elicitation/create" => {
                        elicitation::answer(&shared.server, options, &question["params"]).await
                    }
                    "sampling/createMessage" if options.on_sampling.is_some() => {
                        let refused = |message| Error::Refused {
                            server: shared.server.clone(),
                            what: what.to_owned(),
                            code: REFUSED,
                            message,
                            data: None,
                        };
                        options.sample(question["params"].clone()).await.map_err(refused)?
                    }
                    "roots/list" if options.roots.is_some() => options.root_list(),
                    _ => {
                        let reason =
                            format!("it asked for `{method}`, which this client does not offer");
                        return Err(self.malformed(what, reason));
                    }
                };
                answers.insert(key.clone(), answer);
            }
            Ok(Some(answers))
        };
        tokio::select! {
            biased;
            () = cancelled => {
                Err(Error::Cancelled { server: shared.server.clone(), what: what.to_owned() })
            }
            answers = answering => answers,
        }
    }

    pub(super) fn malformed(&self, what: &str, reason: String) -> Error {
        Error::Malformed { server: self.shared().server.clone(), what: what.to_owned(), reason }
    }
}
