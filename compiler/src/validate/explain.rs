//! Translates an error of the schema library into our terms.
//!
//! The library reports which keyword failed and where; this file and the modules below explain what that means to the
//! author of the file, by kind of mistake.

use jobc_schema::Pointer;
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value as Json;

use crate::diagnostic::{Diagnostic, codes};

use super::accepted::fits;
use super::refused_value::RefusedValue;
use super::report::Report;
use super::schema::{Schema, branches};
use super::{bounds, choices, keys, kinds, names, place, texts};

/// Reports one error of the library.
pub(super) fn explain(error: &ValidationError<'_>, schema: &Schema, report: &mut Report<'_>) {
    let at = Pointer::new(error.instance_path().as_str());
    let (Some(node), Some(part)) = (report.document.at(&at), part(error, schema)) else {
        return report.push(unexplained(error, &at, report));
    };
    let refused = RefusedValue { segments: place::segments(&at), at, node, part, schema };
    // The compiled validator reports an invalid key at its map, with the key as the instance.
    if error.schema_path().as_str().contains("/propertyNames/") {
        return names::refused(&refused, error.instance(), error.kind(), report);
    }
    report.refuse(&refused.at);
    match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            for key in unexpected {
                if report.is_full(codes::UNKNOWN_KEY) {
                    report.count(codes::UNKNOWN_KEY, &refused.at.key(key));
                } else {
                    keys::unknown(&refused, key, report);
                }
            }
        }
        Kind::Required { property } => keys::missing(&refused, property.as_str().unwrap_or_default(), report),
        Kind::Type { .. } => kinds::wrong(&refused, report),
        Kind::AnyOf { context } => union(&refused, context, report),
        Kind::OneOfNotValid { .. } | Kind::Enum { .. } | Kind::Constant { .. } => {
            choices::not_one_of(&refused, report);
        }
        Kind::Pattern { pattern } => texts::malformed(&refused, pattern, report),
        Kind::Minimum { .. }
        | Kind::Maximum { .. }
        | Kind::ExclusiveMinimum { .. }
        | Kind::ExclusiveMaximum { .. } => bounds::number(&refused, report),
        Kind::MinItems { .. } | Kind::MinLength { .. } | Kind::MinProperties { .. } => {
            bounds::empty(&refused, report);
        }
        // `exactly one of` reports this better, by the rules under `rules/`.
        Kind::MaxProperties { .. } => {}
        _ => report.push(unexplained(error, &refused.at, report)),
    }
}

/// Reports a value that matches no branch of a union: what is wrong in the intended branch.
///
/// The branches of our unions differ in their YAML types, so the type of the value shows which was intended.
fn union(refused: &RefusedValue<'_>, context: &[Vec<ValidationError<'static>>], report: &mut Report<'_>) {
    let meant = branches(refused.part)
        .zip(context)
        .find(|(branch, errors)| !errors.is_empty() && fits(refused.schema, branch, refused.node));
    match meant {
        Some((_, errors)) => {
            for error in errors {
                explain(error, refused.schema, report);
            }
        }
        None => kinds::wrong(refused, report),
    }
}

/// The part of the schema whose keyword failed.
fn part<'a>(error: &ValidationError<'_>, schema: &'a Schema) -> Option<&'a Json> {
    let path = error.schema_path().as_str();
    schema.part(path.rsplit_once('/').map_or("", |(part, _)| part))
}

/// A test checks that no keyword of our schemas gets here.
fn unexplained(error: &ValidationError<'_>, at: &Pointer, report: &Report<'_>) -> Diagnostic {
    let subject = place::subject(&place::segments(at));
    Diagnostic::error(
        codes::WRONG_KIND,
        format!("{subject} does not fit the schema ({})", error.kind().keyword()),
    )
    .at_place(report.value(at), "")
}
