//! Errors of the API server about an object, at the lines of the job that they come from.

use super::status::Status;
use crate::built::Manifest;
use crate::place::Problem;

/// The problems that the answer to a dry run names, one for each field.
pub(crate) fn of_status(manifest: &Manifest, status: &Status) -> Vec<Problem> {
    let object = object(manifest);
    let with_field = status.details.causes.iter().filter(|cause| !cause.field.is_empty());
    let mut problems: Vec<Problem> = with_field
        .map(|cause| {
            at_field(
                manifest,
                &cause.field,
                &format!("the cluster rejects {object}: `{}`: {}", cause.field, cause.message),
            )
        })
        .collect();
    if problems.is_empty() {
        problems = unknown_fields(&status.message)
            .iter()
            .map(|field| {
                at_field(
                    manifest,
                    field,
                    &format!("the cluster rejects {object}: it does not know the field `{field}`"),
                )
            })
            .collect();
        for problem in &mut problems {
            problem.help = Some("the release of Kubernetes, or of the kind's controller, may be older than `release` of the target".to_owned());
        }
    }
    if problems.is_empty() {
        problems.push(at_field(
            manifest,
            "metadata.name",
            &format!("the cluster rejects {object}: {}", status.text()),
        ));
    }
    problems.dedup();
    problems
}

/// Whether an object was forbidden because a quota is used up, and not for lack of rights.
pub(crate) fn is_quota(status: &Status) -> bool {
    status.code == 403 && status.message.contains("exceeded quota")
}

/// `Job `train``.
pub(crate) fn object(manifest: &Manifest) -> String {
    format!("{} `{}`", manifest.text("/kind"), manifest.text("/metadata/name"))
}

fn at_field(manifest: &Manifest, field: &str, message: &str) -> Problem {
    let place = manifest.origin(&manifest.pointer(field));
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    Problem::error(message).at(place)
}

/// The fields that a strict check does not know, from both forms of its message:
/// `.spec.foo: field not declared in schema` and `unknown field "spec.foo"`.
fn unknown_fields(message: &str) -> Vec<String> {
    let declared = message.split(": field not declared in schema").filter_map(|part| {
        let word = part.rsplit([' ', '\n', ',']).next()?;
        word.starts_with('.').then(|| word.trim_start_matches('.').to_owned())
    });
    let quoted = message.split("unknown field \"").skip(1).filter_map(|part| part.split('"').next());
    declared.chain(quoted.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::status::{Cause, Details};
    use super::*;
    use serde_json::json;

    #[test]
    fn every_field_of_an_answer_is_a_problem() {
        let manifest = Manifest::new("x", json!({"kind": "Job", "metadata": {"name": "train"}}));
        let cause = |field: &str| Cause {
            field: field.to_owned(),
            message: "Invalid value: 0".to_owned(),
            ..Cause::default()
        };
        let status = Status {
            message: "Job.batch \"train\" is invalid".to_owned(),
            details: Details {
                causes: vec![cause("spec.completions"), cause("spec.parallelism")],
                ..Details::default()
            },
            ..Status::default()
        };
        let messages: Vec<_> =
            of_status(&manifest, &status).into_iter().map(|problem| problem.message).collect();
        assert_eq!(
            messages,
            [
                "the cluster rejects Job `train`: `spec.completions`: Invalid value: 0",
                "the cluster rejects Job `train`: `spec.parallelism`: Invalid value: 0",
            ]
        );
    }

    #[test]
    fn unknown_fields_are_found_in_both_forms() {
        for (message, expected) in [
            (
                "failed to create typed patch object (ml/x; batch/v1, Kind=Job): .spec.foo: field not declared in schema",
                &["spec.foo"][..],
            ),
            (
                "errors:\n  .spec.a: field not declared in schema\n  .spec.b[name=\"x\"].c: field not declared in schema",
                &["spec.a", "spec.b[name=\"x\"].c"],
            ),
            (
                "strict decoding error: unknown field \"spec.foo\", unknown field \"spec.bar\"",
                &["spec.foo", "spec.bar"],
            ),
            ("quota", &[]),
        ] {
            assert_eq!(unknown_fields(message), expected, "{message}");
        }
    }
}
