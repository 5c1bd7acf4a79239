//! Values for what an expression does not give: in the rest of the passes, and as the default of a parameter to declare.

use jobc_schema::Pointer;
use serde_json::Value as Json;

use crate::diagnostic::{Diagnostic, DocumentId, Location, Safety};
use crate::document::Value;
use crate::expression::keeps_type;

/// The stand-in for a text without a form.
const ANY: &str = "x";

/// A value of the right form instead of an invalid one, so that it is not reported again.
pub(super) fn stand_in(path: &[&str]) -> Value {
    const SWITCHES: [&str; 8] =
        ["writable", "unpack", "keep", "read_only_root", "privileged", "same_card", "ssh", "time"];
    let text = match path.last() {
        Some(key) if keeps_type(path) && SWITCHES.contains(key) => return Value::Bool(false),
        Some(_) if keeps_type(path) => return Value::Number { number: 1.into(), text: "1".to_owned() },
        Some(&("memory" | "shm" | "disk")) => "1GiB",
        Some(&"timeout") => "1h",
        Some(&("grace_period" | "grace" | "after" | "delay" | "every" | "try_timeout" | "backoff")) => "10s",
        _ => ANY,
    };
    Value::String(text.to_owned())
}

/// Offers to add a parameter, whose default fits the field that it alone is the value of.
pub(super) fn declare(diagnostic: Diagnostic, name: &str, field: Option<&[&str]>) -> Diagnostic {
    let default = match (field.map(stand_in), field.and_then(<[_]>::last)) {
        (Some(Value::Bool(value)), _) => value.into(),
        (Some(Value::String(_)), Some(&("image" | "from"))) => "python:3.12-slim".into(),
        (Some(Value::String(text)), _) if text != ANY => text.into(),
        _ => Json::from(1),
    };
    let place = Location::Entry { document: DocumentId::Job, pointer: Pointer::ROOT.keys(["params", name]) };
    diagnostic.fix(format!("declare the parameter `{name}`"), place, default.to_string(), Safety::Unsafe)
}
