//! The parameters of tools: one table gives their JSON Schema and the check of what a client sends.

use std::collections::BTreeMap;

use jobc_compiler::suggest::nearest;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// Maximum length of a name, a path or a value, in bytes.
const MAX_WORD_BYTES: usize = 4096;
/// Maximum length of the text of a job file, in bytes.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Maximum number of items of a list.
const MAX_ITEMS: usize = 256;

/// A parameter of a tool.
#[derive(Debug)]
pub(super) struct Parameter {
    pub name: &'static str,
    pub kind: Kind,
    pub about: &'static str,
}

/// What a parameter can be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A name, which becomes one word of a command line.
    Word,
    /// The same, and it must be given.
    RequiredWord,
    /// A file or directory below the root directory.
    Path,
    /// The same, and it must be given.
    RequiredPath,
    /// A text of several lines.
    Text,
    Words,
    /// Names with values.
    Pairs,
    Flag,
    /// A number within bounds, which must be given unless it has a default.
    Count {
        min: u64,
        max: u64,
        default: Option<u64>,
    },
}

impl Kind {
    fn is_required(self) -> bool {
        matches!(self, Self::RequiredWord | Self::RequiredPath | Self::Count { default: None, .. })
    }

    fn schema(self) -> Value {
        match self {
            Self::Word | Self::RequiredWord | Self::Path | Self::RequiredPath => {
                json!({"type": "string", "minLength": 1, "maxLength": MAX_WORD_BYTES})
            }
            Self::Text => json!({"type": "string", "minLength": 1, "maxLength": MAX_TEXT_BYTES}),
            Self::Words => json!({
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": MAX_WORD_BYTES},
                "maxItems": MAX_ITEMS
            }),
            Self::Pairs => json!({
                "type": "object",
                "additionalProperties": {"type": ["string", "number", "boolean"]},
                "maxProperties": MAX_ITEMS
            }),
            Self::Flag => json!({"type": "boolean", "default": false}),
            Self::Count { min, max, default: Some(default) } => {
                json!({"type": "integer", "minimum": min, "maximum": max, "default": default})
            }
            Self::Count { min, max, default: None } => {
                json!({"type": "integer", "minimum": min, "maximum": max})
            }
        }
    }

    /// Why a value cannot be used, in the words after "must be".
    fn check(self, value: &Value) -> Result<(), String> {
        let word = |value: &Value| {
            let text = value.as_str().unwrap_or_default();
            !text.is_empty() && text.len() <= MAX_WORD_BYTES && !text.contains(['\n', '\0'])
        };
        let (is_right, wanted) = match self {
            Self::Path | Self::RequiredPath => (word(value), "a path".to_owned()),
            Self::Word | Self::RequiredWord => (word(value) && !is_option(value), "a name".to_owned()),
            Self::Text => {
                let is_text =
                    value.as_str().is_some_and(|text| !text.is_empty() && text.len() <= MAX_TEXT_BYTES);
                (is_text, format!("a text of at most {MAX_TEXT_BYTES} bytes"))
            }
            Self::Words => {
                let is_list = value.as_array().is_some_and(|items| {
                    items.len() <= MAX_ITEMS && items.iter().all(|item| word(item) && !is_option(item))
                });
                (is_list, format!("a list of at most {MAX_ITEMS} names"))
            }
            Self::Pairs => {
                let is_value = |value: &Value| match value {
                    Value::String(text) => text.len() <= MAX_WORD_BYTES && !text.contains('\0'),
                    Value::Number(_) | Value::Bool(_) => true,
                    _ => false,
                };
                let is_name = |name: &str| {
                    !name.is_empty() && name.len() <= MAX_WORD_BYTES && !name.contains(['=', '\0'])
                };
                let is_map = value.as_object().is_some_and(|pairs| {
                    pairs.len() <= MAX_ITEMS
                        && pairs.iter().all(|(name, value)| is_name(name) && is_value(value))
                });
                (is_map, "an object of names with texts, numbers or booleans".to_owned())
            }
            Self::Flag => (value.is_boolean(), "true or false".to_owned()),
            Self::Count { min, max, .. } => (
                value.as_u64().is_some_and(|n| (min..=max).contains(&n)),
                format!("a number from {min} to {max}"),
            ),
        };
        if is_right { Ok(()) } else { Err(wanted) }
    }
}

/// A word that a command would take for an option.
fn is_option(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with('-'))
}

/// The JSON Schema of the arguments of a tool.
pub(super) fn schema(parameters: &[Parameter]) -> JsonObject {
    let mut properties = JsonObject::new();
    for parameter in parameters {
        let mut schema = parameter.kind.schema();
        schema["description"] = parameter.about.into();
        properties.insert(parameter.name.to_owned(), schema);
    }
    let required: Vec<&str> = parameters
        .iter()
        .filter(|parameter| parameter.kind.is_required())
        .map(|parameter| parameter.name)
        .collect();
    let schema = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    serde_json::from_value(schema).expect("it is an object")
}

/// The arguments of a call, checked.
#[derive(Debug, Default)]
pub(super) struct Arguments(BTreeMap<&'static str, Value>);

impl Arguments {
    /// Checks what a client has sent.
    ///
    /// # Errors
    /// The first mistake, as a message.
    pub(super) fn read(parameters: &'static [Parameter], given: JsonObject) -> Result<Self, String> {
        let mut arguments = BTreeMap::new();
        for (name, value) in given {
            let Some(parameter) = parameters.iter().find(|parameter| parameter.name == name) else {
                let near = nearest(&name, parameters.iter().map(|parameter| parameter.name));
                let known: Vec<String> =
                    parameters.iter().map(|parameter| format!("`{}`", parameter.name)).collect();
                let more = match near {
                    Some(near) => format!("; did you mean `{near}`?"),
                    None if known.is_empty() => "; the tool has no arguments".to_owned(),
                    None => format!("; the arguments are {}", known.join(", ")),
                };
                return Err(format!("unknown argument `{}`{more}", name.escape_debug()));
            };
            // Some clients send null for missing parameters.
            if value.is_null() {
                continue;
            }
            parameter.kind.check(&value).map_err(|wanted| format!("`{name}` must be {wanted}"))?;
            arguments.insert(parameter.name, value);
        }
        let missing = parameters
            .iter()
            .find(|parameter| parameter.kind.is_required() && !arguments.contains_key(parameter.name));
        match missing {
            Some(parameter) => Err(format!("the argument `{}` is missing", parameter.name)),
            None => Ok(Self(arguments)),
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    pub(super) fn words(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    /// Names with values, as `NAME=VALUE`.
    pub(super) fn pairs(&self, name: &str) -> impl Iterator<Item = String> {
        let pairs = self.0.get(name).and_then(Value::as_object).into_iter().flatten();
        pairs.map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        })
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(super) fn count(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: &[Parameter] = &[
        Parameter { name: "file", kind: Kind::RequiredPath, about: "File" },
        Parameter { name: "target", kind: Kind::Words, about: "Targets" },
        Parameter { name: "set", kind: Kind::Pairs, about: "Parameters" },
        Parameter { name: "tail", kind: Kind::Count { min: 1, max: 10, default: Some(5) }, about: "Lines" },
        Parameter { name: "all", kind: Kind::Flag, about: "All" },
    ];

    fn read(given: Value) -> Result<Arguments, String> {
        Arguments::read(PARAMETERS, serde_json::from_value(given).unwrap())
    }

    #[test]
    fn arguments_have_the_types_of_the_table() {
        let given = read(
            json!({"file": "-", "target": ["a", "b"], "set": {"n": 3, "x": "y=z", "on": true}, "all": true, "tail": null}),
        );
        let given = given.unwrap();
        assert_eq!(given.text("file"), Some("-"));
        assert_eq!(given.words("target").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(given.pairs("set").collect::<Vec<_>>(), ["n=3", "x=y=z", "on=true"]);
        assert_eq!((given.flag("all"), given.count("tail")), (true, None));
    }

    #[test]
    fn the_first_mistake_is_reported() {
        for (given, why) in [
            (json!({}), "the argument `file` is missing"),
            (json!({"fil": "x"}), "unknown argument `fil`; did you mean `file`?"),
            (
                json!({"wholly-other": "x"}),
                "unknown argument `wholly-other`; the arguments are `file`, `target`, `set`, `tail`, `all`",
            ),
            (json!({"file": 3}), "`file` must be a path"),
            (json!({"file": "a\u{0}b"}), "`file` must be a path"),
            (json!({"file": "x", "target": "a"}), "`target` must be a list of at most 256 names"),
            (json!({"file": "x", "target": ["--help"]}), "`target` must be a list of at most 256 names"),
            (
                json!({"file": "x", "set": {"a=b": 1}}),
                "`set` must be an object of names with texts, numbers or booleans",
            ),
            (
                json!({"file": "x", "set": {"a": [1]}}),
                "`set` must be an object of names with texts, numbers or booleans",
            ),
            (json!({"file": "x", "tail": 11}), "`tail` must be a number from 1 to 10"),
            (json!({"file": "x", "tail": 1.5}), "`tail` must be a number from 1 to 10"),
            (json!({"file": "x", "all": "yes"}), "`all` must be true or false"),
        ] {
            assert_eq!(read(given).unwrap_err(), why);
        }
    }
}
