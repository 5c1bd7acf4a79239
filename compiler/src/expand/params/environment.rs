//! Parameters whose default is an environment variable: `default: {env: NAME}`.
//!
//! The plan records the variable's name, so no finding shows its value.

use jobc_schema::Scalar;
use jobc_schema::scalar::ScalarKind;

use super::{Declaration, Overrides, checked, describe, parse, stand_in};
use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::source::Span;

/// The value of a parameter, and whether it comes from the environment.
pub(super) struct EnvironmentValue {
    pub(super) value: Scalar,
    pub(super) is_from_environment: bool,
}

/// The value of a variable converted to the parameter's type, else the default written beside its name.
pub(super) fn value(
    param: &Declaration<'_>,
    variable: &str,
    at: Span,
    overrides: &Overrides<'_>,
    sink: &mut Sink,
) -> EnvironmentValue {
    let written = param.default.as_ref().and_then(|(value, _)| super::convert(value, param.kind));
    let Some(look) = overrides.environment else {
        let value = written.unwrap_or_else(|| placeholder(param));
        return EnvironmentValue { value, is_from_environment: true };
    };
    if let Some(text) = look(variable) {
        let value = read(&text, param, variable, at, sink).unwrap_or_else(|| placeholder(param));
        return EnvironmentValue { value, is_from_environment: true };
    }
    let value = written.unwrap_or_else(|| {
        // A default of the wrong type was reported itself.
        if param.default.is_none() {
            sink.push(unset(param, variable, at));
        }
        placeholder(param)
    });
    EnvironmentValue { value, is_from_environment: false }
}

fn read(text: &str, param: &Declaration<'_>, variable: &str, at: Span, sink: &mut Sink) -> Option<Scalar> {
    let Some(value) = parse(text, param.kind) else {
        let wanted = describe(param.kind);
        let message = format!(
            "the environment variable `{variable}` is not {wanted}, which the parameter `{}` takes",
            param.name
        );
        sink.push(Diagnostic::error(codes::PARAM_TYPE, message).at_span(at, "read from here"));
        return None;
    };
    let mut aside = Sink::new();
    let value = checked(&value, param, &Location::Span(at), "the value", &[], &mut aside);
    for mut diagnostic in aside.finish() {
        diagnostic.message = format!(
            "the value of the environment variable `{variable}` is not allowed for the parameter `{}`",
            param.name
        );
        // The value is in no file: the finding points to the variable's name.
        diagnostic.fixes.clear();
        sink.push(diagnostic);
    }
    value
}

fn unset(param: &Declaration<'_>, variable: &str, at: Span) -> Diagnostic {
    let name = param.name;
    let example = placeholder(param);
    let example = if param.kind == ScalarKind::String && param.choices.is_empty() {
        "VALUE".to_owned()
    } else {
        example.text
    };
    let message =
        format!("the parameter `{name}` has no value: the environment variable `{variable}` is not set");
    Diagnostic::error(codes::PARAM_UNSET, message).at_span(at, "not set").note(format!(
        "set `{variable}`, give `--set {name}=…`, or write `default: {{env: {variable}, default: {example}}}`"
    ))
}

/// A value that satisfies the constraints, used if the real one is unknown.
fn placeholder(param: &Declaration<'_>) -> Scalar {
    if let Some(choice) = param.choices.first() {
        return choice.clone();
    }
    let bound = param.min.or(param.max).map(|(bound, _)| bound);
    let number = bound.filter(|_| matches!(param.kind, ScalarKind::Integer | ScalarKind::Number));
    number.and_then(|number| parse(&number.to_string(), param.kind)).unwrap_or_else(|| stand_in(param.kind))
}
