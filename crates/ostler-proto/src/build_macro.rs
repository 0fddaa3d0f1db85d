//! [`build!`](crate::build!): values of types that other crates cannot write as literals.

/// Builds a value of a struct that is `#[non_exhaustive]`, in the form of a literal.
///
/// Fields that are not given are empty, as in `Default`. A type without `Default` has a function `new` for the fields
/// that cannot be empty; its value is the base after `..`.
///
/// ```
/// use ostler_proto::build;
/// use ostler_proto::control::CanUseTool;
/// use ostler_proto::message::system::{HookOutcome, HookResponse};
///
/// let tool_name = "Bash".to_owned();
/// let call = build!(CanUseTool { tool_name, input: serde_json::json!({"command": "ls"}) });
/// assert_eq!((call.tool_name.as_str(), call.tool_use_id), ("Bash", None));
///
/// let base = HookResponse::new("h1", HookOutcome::Success);
/// let response = build!(HookResponse { hook_name: "check".to_owned(), ..base });
/// assert_eq!((response.hook_id.as_str(), response.hook_name.as_str()), ("h1", "check"));
/// ```
#[macro_export]
macro_rules! build {
    (@value $field:ident) => { $field };
    (@value $field:ident $value:expr) => { $value };
    ($type:path { $($field:ident $(: $value:expr)?),* $(,)? }) => {
        $crate::build!($type { $($field $(: $value)?,)* ..<$type as ::std::default::Default>::default() })
    };
    ($type:path { $($field:ident $(: $value:expr)?,)* ..$base:expr }) => {{
        let mut built: $type = $base;
        $(built.$field = $crate::build!(@value $field $($value)?);)*
        built
    }};
}
