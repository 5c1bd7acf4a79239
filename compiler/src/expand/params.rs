//! Parameters: their types, their constraints, and the values given on the command line.

mod environment;

use indexmap::IndexMap;
use jobc_schema::Scalar;
use jobc_schema::scalar::ScalarKind;

use crate::diagnostic::{Diagnostic, Edit, Fix, Location, Safety, Sink, codes, unquoted};
use crate::document::{Document, Entry, Node, Value};
use crate::source::{SourceId, Span};
use crate::suggest;

/// Looks up an environment variable of the user by its name.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Values of parameters from outside the job file. If several name one parameter, the last wins, and `set` wins
/// over `params`.
#[derive(Clone, Default)]
pub struct Overrides<'a> {
    /// `--set NAME=VALUE`, in order.
    pub set: Vec<(String, String)>,
    /// `--params FILE`, in order, each a map of names to values.
    pub params: Vec<(SourceId, Document)>,
    /// Looks up an environment variable; `None` if the environment is not known, as in an editor.
    pub environment: Option<Environment<'a>>,
    /// Combinations of the job's matrix that keep their numbers: those of an earlier run of the same sweep.
    pub numbers: &'a [(IndexMap<String, Scalar>, u32)],
}

/// The parameters with their values.
pub(super) struct ParamValues {
    /// The values.
    pub(super) values: IndexMap<String, Scalar>,
    /// The environment variables that values come from, by parameter.
    pub(super) from_environment: IndexMap<String, String>,
}

/// A parameter as the job file declares it.
struct Declaration<'a> {
    name: &'a str,
    key: Span,
    kind: ScalarKind,
    /// Whether `type` gives the type, and not the default.
    typed: bool,
    /// The environment variable that the default comes from, if any.
    env: Option<(String, Span)>,
    /// The default otherwise.
    default: Option<(Scalar, Span)>,
    choices: Vec<Scalar>,
    min: Option<(f64, Span)>,
    max: Option<(f64, Span)>,
}

/// Reads the parameters and determines their values.
///
/// A parameter with an invalid value gets a valid one of its type, so that one mistake is reported once.
pub(super) fn read(document: &Document, overrides: &Overrides<'_>, sink: &mut Sink) -> ParamValues {
    let entries = document.root.get("params").map_or(&[][..], Node::entries);
    let declared: IndexMap<&str, Declaration<'_>> =
        entries.iter().map(|entry| (entry.key.as_str(), declare(entry, sink))).collect();
    let mut values: IndexMap<String, Option<Scalar>> = IndexMap::new();
    for param in declared.values() {
        let default = param.default.as_ref().map(|(value, span)| {
            let at = Location::Span(*span);
            checked(value, param, &at, "the default", &[], sink).unwrap_or_else(|| stand_in(param.kind))
        });
        // The environment has lower priority than given values, and is then not read.
        values.insert(param.name.to_owned(), default.filter(|_| param.env.is_none()));
    }
    for (_, file) in &overrides.params {
        if !matches!(file.root.value, Value::Mapping(_) | Value::Null) {
            sink.push(
                Diagnostic::error(codes::PARAM_TYPE, "a parameter file must be a map of names to values")
                    .at_span(file.root.span, format!("this is {}", file.root.describe()))
                    .note("write for example `batch_size: 512`"),
            );
        }
        for entry in file.root.entries() {
            let Some(param) = declared.get(entry.key.as_str()) else {
                sink.push(unknown(&entry.key, &declared, document).at_span(entry.key_span, ""));
                continue;
            };
            let place = Location::Span(entry.value.span);
            let scalar = entry.value.to_scalar();
            if scalar.is_none() {
                sink.push(wrong_type(&entry.value.describe(), param).at_place(place.clone(), ""));
            }
            let given = scalar.and_then(|scalar| checked(&scalar, param, &place, "the value", &[], sink));
            values.insert(entry.key.clone(), Some(given.unwrap_or_else(|| stand_in(param.kind))));
        }
    }
    for (name, text) in &overrides.set {
        let note = [format!("given by `--set {name}={text}`")];
        let Some(param) = declared.get(name.as_str()) else {
            // The start of the file, if it has no `params`.
            let at = match document.root.entries().iter().find(|entry| entry.key == "params") {
                Some(entry) => entry.key_span,
                None => Span { end: document.root.span.start, ..document.root.span },
            };
            let mut diagnostic = unknown(name, &declared, document).at_span(at, "");
            diagnostic.notes.extend(note);
            sink.push(diagnostic);
            continue;
        };
        let at = Location::Span(param.key);
        let scalar = parse(text, param.kind);
        if scalar.is_none() {
            let mut diagnostic =
                wrong_type(&format!("`{text}`"), param).at_place(at.clone(), "declared here");
            diagnostic.notes.extend(note.clone());
            sink.push(diagnostic);
        }
        let given = scalar.and_then(|scalar| checked(&scalar, param, &at, "the value", &note, sink));
        values.insert(name.clone(), Some(given.unwrap_or_else(|| stand_in(param.kind))));
    }
    let mut settled = ParamValues { values: IndexMap::new(), from_environment: IndexMap::new() };
    for (name, value) in values {
        let param = &declared[name.as_str()];
        if let (None, Some((variable, at))) = (&value, &param.env) {
            let found = environment::value(param, variable, *at, overrides, sink);
            if found.is_from_environment {
                settled.from_environment.insert(name.clone(), variable.clone());
            }
            settled.values.insert(name, found.value);
            continue;
        }
        let value = value.unwrap_or_else(|| {
            sink.push(
                Diagnostic::error(codes::PARAM_MISSING, format!("the parameter `{name}` has no value"))
                    .at_span(param.key, "it has no default")
                    .note(format!("give it with `--set {name}=…`, or write a `default`")),
            );
            stand_in(param.kind)
        });
        settled.values.insert(name, value);
    }
    settled
}

fn declare<'a>(entry: &'a Entry, sink: &mut Sink) -> Declaration<'a> {
    let node = &entry.value;
    let rules = matches!(node.value, Value::Mapping(_));
    let get = |key: &str| if rules { node.get(key) } else { None };
    let scalar = |node: &Node| node.to_scalar().map(|scalar| (scalar, node.span));
    let written = if rules { get("default") } else { Some(node) };
    let environment = written.filter(|node| rules && matches!(node.value, Value::Mapping(_)));
    let env = environment.and_then(|node| {
        let name = node.get("env")?;
        Some((name.as_str()?.to_owned(), name.span))
    });
    let default = environment.map_or(written, |node| node.get("default")).and_then(scalar);
    let choices: Vec<Scalar> =
        get("choices").map_or(&[][..], Node::items).iter().filter_map(Node::to_scalar).collect();
    let number = |key| {
        let node = get(key)?;
        if let Value::Number { number, .. } = &node.value {
            Some((number.as_f64()?, node.span))
        } else {
            None
        }
    };
    let typed = match get("type").and_then(Node::as_str) {
        Some("string") => Some(ScalarKind::String),
        Some("integer") => Some(ScalarKind::Integer),
        Some("number") => Some(ScalarKind::Number),
        Some("bool") => Some(ScalarKind::Bool),
        _ => None,
    };
    let examples = || default.iter().map(|(scalar, _)| scalar).chain(&choices);
    let kind = typed.unwrap_or_else(|| match examples().next().map(Scalar::kind) {
        // `{default: 1, choices: [0.5, 1]}` means numbers.
        Some(ScalarKind::Integer) if examples().any(|s| s.kind() == ScalarKind::Number) => ScalarKind::Number,
        Some(kind) => kind,
        None => ScalarKind::String,
    });
    let param = Declaration {
        name: &entry.key,
        key: entry.key_span,
        kind,
        typed: typed.is_some(),
        env,
        default,
        choices,
        min: number("min"),
        max: number("max"),
    };
    contradictions(&param, sink);
    param
}

fn contradictions(param: &Declaration<'_>, sink: &mut Sink) {
    let name = param.name;
    let numeric = matches!(param.kind, ScalarKind::Integer | ScalarKind::Number);
    for (key, bound) in [("min", param.min), ("max", param.max)] {
        if let Some((_, span)) = bound.filter(|_| !numeric) {
            sink.push(
                Diagnostic::error(codes::PARAM_RULES, format!("`{key}` does not fit the parameter `{name}`"))
                    .at_span(span, format!("`{name}` is {}", describe(param.kind)))
                    .note("`min` and `max` are for integers and numbers; list the values allowed under `choices`"),
            );
        }
    }
    if let (Some((min, at)), Some((max, other))) = (param.min, param.max)
        && min > max
    {
        let mut diagnostic =
            Diagnostic::error(codes::PARAM_RULES, format!("no value of the parameter `{name}` is allowed"))
                .at_span(at, "the minimum is greater")
                .at_span(other, "the greatest");
        {
            let edit = |span: Span, text: String| Edit { place: Location::Span(span), text };
            let edits = vec![edit(at, max.to_string()), edit(other, min.to_string())];
            let message = format!("write `min: {max}` and `max: {min}`");
            diagnostic.fixes.push(Fix { message, edits, safety: Safety::Unsafe });
        }
        sink.push(diagnostic);
    }
    for choice in &param.choices {
        if convert(choice, param.kind).is_none() {
            sink.push(
                Diagnostic::error(
                    codes::PARAM_RULES,
                    format!(
                        "the choice `{choice}` of the parameter `{name}` is not {}",
                        describe(param.kind)
                    ),
                )
                .at_span(param.key, "")
                .note("write `type:` if the default does not determine the type"),
            );
        }
    }
}

/// The value converted to the parameter's type, if it satisfies the constraints.
fn checked(
    value: &Scalar,
    param: &Declaration<'_>,
    at: &Location,
    what: &str,
    notes: &[String],
    sink: &mut Sink,
) -> Option<Scalar> {
    let Some(value) = convert(value, param.kind) else {
        let mut diagnostic = wrong_type(&format!("`{value}`"), param).at_place(at.clone(), "");
        // A value of an option is in no file.
        let number =
            value.text.replace('_', "").parse::<i64>().ok().filter(|_| param.kind == ScalarKind::Integer);
        if let (Some(number), Location::Span(_), true) = (number, at, notes.is_empty()) {
            diagnostic = diagnostic.write(at.clone(), &number.to_string());
        }
        diagnostic.notes.extend_from_slice(notes);
        sink.push(diagnostic);
        return None;
    };
    let mut refuse = |why: String, help: String, near: Option<&str>| {
        let message = format!("{what} `{value}` of the parameter `{}` is not allowed", param.name);
        let mut diagnostic =
            Diagnostic::error(codes::PARAM_RANGE, message).at_place(at.clone(), why).note(help);
        // A value of an option is in no file.
        if let (Some(near), Location::Span(span), true) = (near, &at, notes.is_empty()) {
            diagnostic = diagnostic.write(Location::Span(unquoted(*span, &value.text)), near);
        }
        diagnostic.notes.extend_from_slice(notes);
        sink.push(diagnostic);
    };
    if !param.choices.is_empty() && !param.choices.iter().any(|choice| same(choice, &value, param.kind)) {
        let names: Vec<&str> = param.choices.iter().map(|choice| choice.text.as_str()).collect();
        let near = suggest::nearest(&value.text, names.iter().copied());
        let label =
            near.map_or("not one of the choices".to_owned(), |near| format!("did you mean `{near}`?"));
        refuse(label, format!("the choices are {}", suggest::list(names)), near);
        return None;
    }
    // Bounds that no value satisfies were reported themselves.
    let possible = param.min.zip(param.max).is_none_or(|((min, _), (max, _))| min <= max);
    let number = value.value.as_f64().filter(|_| possible);
    if let (Some((min, _)), Some(number)) = (param.min, number)
        && number < min
    {
        refuse(format!("less than {min}"), format!("the minimum is {min}"), None);
        return None;
    }
    if let (Some((max, _)), Some(number)) = (param.max, number)
        && number > max
    {
        refuse(format!("more than {max}"), format!("the maximum is {max}"), None);
        return None;
    }
    Some(value)
}

/// Converts a scalar to another type if nothing is lost; a number's text is a string.
fn convert(scalar: &Scalar, kind: ScalarKind) -> Option<Scalar> {
    match (kind, scalar.kind()) {
        (ScalarKind::String, _) => Some(Scalar::string(scalar.text.clone())),
        (ScalarKind::Number, ScalarKind::Integer) => Some(scalar.clone()),
        (wanted, found) if wanted == found => Some(scalar.clone()),
        _ => None,
    }
}

/// Converts the text of a `--set` to the parameter's type.
fn parse(text: &str, kind: ScalarKind) -> Option<Scalar> {
    let value = match kind {
        ScalarKind::String => return Some(Scalar::string(text)),
        ScalarKind::Bool => serde_json::Value::Bool(text.parse().ok()?),
        ScalarKind::Integer => text.parse::<i64>().ok()?.into(),
        ScalarKind::Number => {
            if let Ok(whole) = text.parse::<i64>() {
                whole.into()
            } else if text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c)) {
                serde_json::Number::from_f64(text.parse().ok()?)?.into()
            } else {
                return None;
            }
        }
    };
    Some(Scalar { value, text: text.to_owned() })
}

fn same(choice: &Scalar, value: &Scalar, kind: ScalarKind) -> bool {
    if kind == ScalarKind::String {
        return choice.text == value.text;
    }
    super::matrix::same(choice, value)
}

/// A value of the type, for a parameter whose own value is invalid.
fn stand_in(kind: ScalarKind) -> Scalar {
    let value = match kind {
        ScalarKind::String => return Scalar::string("x"),
        ScalarKind::Bool => serde_json::Value::Bool(false),
        ScalarKind::Integer | ScalarKind::Number => serde_json::Value::from(1),
    };
    Scalar { text: value.to_string(), value }
}

fn wrong_type(found: &str, param: &Declaration<'_>) -> Diagnostic {
    let wanted = describe(param.kind);
    let mut diagnostic = Diagnostic::error(
        codes::PARAM_TYPE,
        format!("{found} is not {wanted}, which the parameter `{}` takes", param.name),
    );
    if param.kind == ScalarKind::Integer && !param.typed {
        diagnostic = diagnostic.note("the type is the default's; write `type: number` for fractions");
    }
    diagnostic
}

fn unknown(name: &str, declared: &IndexMap<&str, Declaration<'_>>, document: &Document) -> Diagnostic {
    let job = document.root.get("name").and_then(Node::as_str).unwrap_or("the job");
    let diagnostic =
        Diagnostic::error(codes::PARAM_UNKNOWN, format!("unknown parameter `{name}` of `{job}`"));
    if declared.is_empty() {
        return diagnostic.note("the job has no `params`");
    }
    match suggest::nearest(name, declared.keys().copied()) {
        Some(near) => diagnostic.note(format!("did you mean `{near}`?")),
        None => diagnostic.note(format!("its parameters are {}", suggest::list(declared.keys().copied()))),
    }
}

fn describe(kind: ScalarKind) -> &'static str {
    match kind {
        ScalarKind::String => "a string",
        ScalarKind::Integer => "an integer",
        ScalarKind::Number => "a number",
        ScalarKind::Bool => "`true` or `false`",
    }
}
