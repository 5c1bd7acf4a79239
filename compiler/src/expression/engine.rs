//! Evaluates expressions.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use indexmap::IndexMap;
use jobc_schema::Scalar;
use minijinja::value::{Serde, ValueKind};
use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value};

use super::failure::{Failure, JOIN, empty, failure, keys_note, missing, too_long, undefined};
use super::holes::{Hole, HoleList};
use super::names::{Key, Path, paths, quote_dashes};
use super::scopes::Scope;
use super::sh;
use crate::diagnostic::codes;
use crate::suggest;

/// The maximum number of evaluation steps of an expression.
const FUEL: u64 = 200_000;

/// The maximum size of an expression in bytes. The engine's parser is recursive: longer code could overflow the stack.
const MAX_LENGTH: usize = 1000;

/// Filters that take text: a number piped into them is its source text.
const TEXT_FILTERS: &[&str] = &["sh", "string", "upper", "lower", "replace", "trim", "title"];

/// What to write instead of a list of ports.
const ONE_OF_PORTS: &str = "each instance has a port: pick one with `[0]`; `$JOBC_ENDPOINTS_<ROLE>_<LABEL>` has all of them with their addresses";

/// Why a list of ports has no `join`.
const NO_JOIN: &str = "the ports of several instances cannot be joined; `$JOBC_ENDPOINTS_<ROLE>_<LABEL>` has all of them with their addresses";

/// Evaluates expressions.
pub struct Engine {
    environment: Environment<'static>,
}

/// The names that an expression may use, with their values.
#[derive(Clone, Default)]
pub struct Names {
    scopes: BTreeMap<Scope, Value>,
    /// Numbers with their source text, which the engine would format differently.
    written: BTreeMap<Scope, Arc<IndexMap<String, Scalar>>>,
}

/// The result of an expression.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A parameter or matrix value, as written.
    Written(Scalar),
    /// Anything else.
    Value(Value),
}

impl Names {
    /// Adds a scope.
    pub fn insert(&mut self, scope: Scope, value: Value) {
        self.scopes.insert(scope, value);
    }

    /// Adds a scope of scalars that keep their source text.
    pub fn insert_written(&mut self, scope: Scope, scalars: &Arc<IndexMap<String, Scalar>>) {
        let value =
            Value::from_pairs(scalars.iter().map(|(k, s)| (k.as_str(), Value::from(Serde(&s.value)))));
        self.scopes.insert(scope, value);
        self.written.insert(scope, scalars.clone());
    }

    /// Whether a scope exists.
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.contains_key(&scope)
    }

    /// The value of a path, if each step exists.
    ///
    /// # Errors
    /// The first missing step, with the existing names.
    pub fn check(&self, path: &Path) -> Result<Value, Failure> {
        let first = &path.steps[0];
        let known = || self.scopes.keys().map(|scope| scope.as_str());
        let found = Scope::parse(path.root()).and_then(|scope| self.scopes.get(&scope));
        let Some(mut value) = found.cloned() else {
            return Err(undefined(path, 0, path.root(), suggest::nearest(path.root(), known()), known())
                .at(first.range.clone()));
        };
        for (number, step) in path.steps.iter().enumerate().skip(1) {
            let next = match &step.key {
                Key::Name(name) => value.get_attr(name),
                Key::Item(index) => value.get_item_by_index(*index),
            };
            match next {
                Ok(next) if !next.is_undefined() => value = next,
                _ => {
                    let mut failure = missing(path, number, &value).at(step.range.clone());
                    if let Some((range, meant)) = self.in_other_scope(path).filter(|_| number == 1) {
                        failure.label = format!("did you mean `{meant}`?").into();
                        failure.near = Some(meant.into());
                        failure.range = Some(range);
                    }
                    return Err(failure);
                }
            }
        }
        Ok(value)
    }

    /// A name with the scope that has it: `matrix.lr` for `lr`.
    pub fn with_scope(&self, name: &str) -> Option<String> {
        let has = |scope: &Scope| {
            let value = self.scopes.get(scope).and_then(|below| below.get_attr(name).ok());
            value.is_some_and(|value| !value.is_undefined())
        };
        let scope = [Scope::Params, Scope::Matrix].into_iter().find(has)?;
        Some(format!("{}.{name}", scope.as_str()))
    }

    /// The parameter or matrix value with the name that a path looks for elsewhere, `params.seed` or `sweep.seed`, and
    /// the part of the code to replace.
    pub fn in_other_scope(&self, path: &Path) -> Option<(Range<usize>, String)> {
        let name = path.name(1)?;
        let has = |scope: &Scope| {
            let value = self.scopes.get(scope).and_then(|below| below.get_attr(name).ok());
            scope.as_str() != path.root() && value.is_some_and(|value| !value.is_undefined())
        };
        let scope = [Scope::Params, Scope::Matrix].into_iter().find(has)?;
        // In brackets, the name is in quotes.
        let end = &path.steps[1].range;
        let is_plain = end.len() == name.len();
        is_plain.then(|| (path.range.start..end.end, format!("{}.{name}", scope.as_str())))
    }

    fn original(&self, path: &Path) -> Option<&Scalar> {
        let scalars = self.written.get(&Scope::parse(path.root())?)?;
        if path.steps.len() == 2 { scalars.get(path.name(1)?) } else { None }
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    /// An engine with the usual filters, `sh`, and a `join` that supports lists of placeholders.
    pub fn new() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        environment.set_debug(true);
        // These are for HTML and for debugging templates.
        for filter in ["safe", "escape", "e", "pprint"] {
            environment.remove_filter(filter);
        }
        environment.remove_global("debug");
        environment.add_filter("sh", |value: &Value| match value.kind() {
            ValueKind::Seq | ValueKind::Iterable => {
                let words: Vec<String> = value.try_iter()?.map(|item| sh::quote(&item.to_string())).collect();
                Ok(words.join(" "))
            }
            _ => Ok::<_, minijinja::Error>(sh::quote(&value.to_string())),
        });
        environment.add_filter("tojson", |value: &Value| {
            serde_json::to_string(value)
                .map_err(|error| minijinja::Error::new(ErrorKind::BadSerialization, error.to_string()))
        });
        environment.add_filter("join", |value: &Value, separator: Option<&str>| {
            let separator = separator.unwrap_or_default();
            if let Some(list) = value.downcast_object_ref::<HoleList>() {
                let Some(joined) = &list.joined else {
                    return Err(minijinja::Error::new(ErrorKind::InvalidOperation, NO_JOIN));
                };
                return Ok(super::holes::mark(&joined(separator)));
            }
            let items: Vec<String> = value.try_iter()?.map(|item| item.to_string()).collect();
            Ok::<_, minijinja::Error>(items.join(separator))
        });
        Self { environment }
    }

    /// Checks the syntax of the code.
    ///
    /// # Errors
    /// Returns the engine's error.
    pub fn check(&self, code: &str) -> Result<(), Failure> {
        if code.len() > MAX_LENGTH {
            return Err(too_long(MAX_LENGTH));
        }
        let known = paths(code);
        let readable = quote_dashes(code, &known);
        match self.environment.compile_expression(&readable) {
            Ok(_) if !code.trim().is_empty() => Ok(()),
            Ok(_) => Err(empty()),
            Err(_) if code.trim().is_empty() => Err(empty()),
            Err(error) => Err(failure(&error, code == readable)),
        }
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    /// Returns an undefined name, or the engine's error.
    pub fn evaluate(&self, code: &str, names: &Names) -> Result<Outcome, Failure> {
        if code.len() > MAX_LENGTH {
            return Err(too_long(MAX_LENGTH));
        }
        let known = paths(code);
        let mut values = Vec::with_capacity(known.len());
        for path in &known {
            values.push(names.check(path)?);
        }
        // Most expressions are just a name: it needs no engine, and a number keeps its text.
        if let ([path], [value]) = (&known[..], &values[..])
            && code.trim() == &code[path.range.clone()]
        {
            return Ok(match names.original(path) {
                Some(scalar) => Outcome::Written(scalar.clone()),
                None => Outcome::Value(value.clone()),
            });
        }
        let spelled = spell_numbers(code, &known, names);
        let readable = match &spelled {
            Some(code) => quote_dashes(code, &paths(code)),
            None => quote_dashes(code, &known),
        };
        let same = code == readable;
        let expression =
            self.environment.compile_expression(&readable).map_err(|error| failure(&error, same))?;
        let context =
            Value::from_pairs(names.scopes.iter().map(|(scope, value)| (scope.as_str(), value.clone())));
        let value = expression.eval(context).map_err(|error| failure(&error, same))?;
        Ok(Outcome::Value(value))
    }
}

impl Outcome {
    /// The result as text.
    ///
    /// # Errors
    /// Fails for a list, a map, or an undefined value.
    pub fn text(&self) -> Result<String, Failure> {
        match self {
            Self::Written(scalar) => Ok(scalar.text.clone()),
            Self::Value(value) if value.downcast_object_ref::<Hole>().is_some() => Ok(value.to_string()),
            Self::Value(value) => match value.kind() {
                ValueKind::String | ValueKind::Number | ValueKind::Bool => Ok(value.to_string()),
                ValueKind::Seq | ValueKind::Iterable => Err(Failure::new(
                    codes::EXPRESSION_VALUE,
                    "the expression is a list, which cannot be part of text",
                    "a list",
                )
                .note(match value.downcast_object_ref::<HoleList>() {
                    Some(HoleList { joined: None, .. }) => ONE_OF_PORTS,
                    _ => JOIN,
                })),
                ValueKind::Map => Err(Failure::new(
                    codes::EXPRESSION_VALUE,
                    "the expression is a map, which cannot be part of text",
                    "a map",
                )
                .note(keys_note(value))),
                _ => Err(Failure::new(codes::EXPRESSION_VALUE, "the expression has no value", "nothing")),
            },
        }
    }

    /// The result as a scalar of its own type.
    ///
    /// # Errors
    /// As [`Outcome::text`].
    pub fn scalar(&self) -> Result<Scalar, Failure> {
        if let Self::Written(scalar) = self {
            return Ok(scalar.clone());
        }
        let text = self.text()?;
        let Self::Value(value) = self else { return Ok(Scalar::string(text)) };
        Ok(match value.kind() {
            ValueKind::Number | ValueKind::Bool => {
                Scalar { value: serde_json::to_value(value).unwrap_or_default(), text }
            }
            _ => Scalar::string(text),
        })
    }
}

/// Replaces numbers of `params` and `matrix` with strings where text is built from them, so that `3.10` stays `3.10`.
fn spell_numbers(code: &str, paths: &[Path], names: &Names) -> Option<String> {
    let mut out = String::new();
    let mut from = 0;
    for path in paths {
        let Some(scalar) = names.original(path).filter(|s| s.value.is_number()) else { continue };
        let before = code[..path.range.start].trim_end();
        let after = code[path.range.end..].trim_start();
        let alone_before = before.is_empty() || before.ends_with(['~', '(', ',']);
        let filter = after.strip_prefix('|').map(str::trim_start);
        let in_filter = filter.is_some_and(|f| TEXT_FILTERS.iter().any(|known| f.starts_with(known)));
        let in_text = alone_before
            && (after.starts_with('~')
                || (before.ends_with('~') && (after.is_empty() || after.starts_with([')', ',']))));
        if in_text || in_filter {
            out.push_str(&code[from..path.range.start]);
            out.push('"');
            out.push_str(&scalar.text);
            out.push('"');
            from = path.range.end;
        }
    }
    if from == 0 {
        return None;
    }
    out.push_str(&code[from..]);
    Some(out)
}
