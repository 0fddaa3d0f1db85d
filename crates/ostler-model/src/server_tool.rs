//! Tools that the API runs itself, while it answers.

use serde::Serialize;

/// A tool of the API. Its calls and results are blocks of the response; there is nothing to run here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum ServerTool {
    /// Searches the web.
    #[serde(rename = "web_search_20250305")]
    WebSearch(WebSearch),
}

/// How the API may search the web.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "name", rename = "web_search")]
pub struct WebSearch {
    /// The most searches for one response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_uses: Option<u32>,
    /// Only these sites. The API accepts either this or `blocked_domains`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_domains: Vec<String>,
    /// All sites but these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_domains: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Request, ToolSpec};

    #[test]
    fn the_tools_of_the_api_come_after_ours_and_have_the_cache_marker() {
        let spec = ToolSpec {
            name: "A".into(),
            description: "d".into(),
            input_schema: json!({"type": "object"}),
        };
        let search = WebSearch {
            max_uses: Some(3),
            blocked_domains: vec!["example.com".into()],
            ..WebSearch::default()
        };
        let request = Request {
            tools: vec![spec].into(),
            server_tools: vec![ServerTool::WebSearch(search)],
            ..Request::new("m", Vec::new())
        };
        let body = serde_json::to_value(request).unwrap();
        assert_eq!(
            body["tools"],
            json!([
                {"name": "A", "description": "d", "input_schema": {"type": "object"}},
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 3,
                    "blocked_domains": ["example.com"], "cache_control": {"type": "ephemeral"}},
            ])
        );
    }
}
