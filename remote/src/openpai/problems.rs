//! What a server refuses about a job, at the lines of the job that it comes from.

use serde::Deserialize;

use super::status::Status;
use crate::built::Manifest;
use crate::place::Problem;

/// A mistake that the schema of the server finds (ajv; pai, `src/rest-server/src/middlewares/v2/protocol.js`).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SchemaError {
    /// The field: `.taskRoles['train'].instances`.
    #[serde(default)]
    data_path: String,
    #[serde(default)]
    message: String,
}

/// The problems of an answer.
pub(crate) fn of_status(manifest: &Manifest, status: &Status) -> Vec<Problem> {
    // The schema's mistakes are a list in the message.
    if let Ok(errors) = serde_json::from_str::<Vec<SchemaError>>(&status.message)
        && !errors.is_empty()
    {
        let mut problems: Vec<Problem> = errors.iter().map(|error| at_field(manifest, error)).collect();
        problems.dedup();
        return problems;
    }
    let (pointer, help) = match status.code.as_str() {
        "ForbiddenUserError" | "NoVirtualClusterError" => (
            "/defaults/virtualCluster",
            "`jobc targets check TARGET` shows the virtual clusters that you may use",
        ),
        "NoStorageError" => {
            ("/extras/storages", "`jobc targets check TARGET` shows the storages that you may use")
        }
        _ => ("/name", ""),
    };
    vec![Problem {
        is_warning: false,
        message: format!("OpenPAI rejects the job: {}", status.text()),
        place: manifest.origin(pointer),
        help: Some(help.to_owned()).filter(|help| !help.is_empty()),
    }]
}

fn at_field(manifest: &Manifest, error: &SchemaError) -> Problem {
    let field = error.data_path.trim_start_matches('.');
    let shown = if field.is_empty() { "it".to_owned() } else { format!("`{field}`") };
    Problem {
        is_warning: false,
        message: format!("OpenPAI rejects the job: {shown} {}", error.message),
        place: manifest.origin(&manifest.pointer(field)),
        help: Some("the release of OpenPAI may not know what the job requests".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn mistakes_of_the_schema_are_one_problem_each() {
        let manifest = Manifest::new("openpai/job.yaml", json!({"name": "x"}));
        let message = json!([
            {"keyword": "minimum", "dataPath": ".taskRoles['train'].instances", "message": "should be >= 1"},
            {"keyword": "additionalProperties", "dataPath": "", "message": "should NOT have additional properties"},
        ]);
        let status = Status { http: 400, message: message.to_string(), ..Status::default() };
        let shown: Vec<_> =
            of_status(&manifest, &status).into_iter().map(|problem| problem.message).collect();
        assert_eq!(
            shown,
            [
                "OpenPAI rejects the job: `taskRoles['train'].instances` should be >= 1",
                "OpenPAI rejects the job: it should NOT have additional properties",
            ]
        );
        assert_eq!(manifest.pointer("taskRoles['train'].instances"), "/taskRoles/train/instances");
    }

    #[test]
    fn another_answer_is_shown_as_it_is() {
        let manifest = Manifest::new("openpai/job.yaml", json!({"name": "x"}));
        let status = Status {
            http: 404,
            code: "NoStorageError".to_owned(),
            message: "Storage x is not found.".to_owned(),
            ..Status::default()
        };
        let problem = &of_status(&manifest, &status)[0];
        assert_eq!(problem.message, "OpenPAI rejects the job: Storage x is not found");
        assert!(problem.help.is_some());
    }
}
