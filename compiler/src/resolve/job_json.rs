//! `/etc/jobc/job.json`: the description of the job for programs.
//!
//! It is the same for all instances of a role, so that targets can share one file; an instance's own index is in
//! `JOBC_INDEX`.

use jobc_schema::plan::{FileContent, FilePlan, JobPlan, Reference, RolePlan, Text};
use serde_json::json;

use super::framework::framework_name;
use super::list_limits::MAX_LISTED_INSTANCES;

const PATH: &str = "/etc/jobc/job.json";

/// The content of the file for a role that sees these roles.
///
/// `{"job", "roles": {ROLE: {"instances", "matrix"?: {AXIS: VALUE}, "hosts"?, "endpoints"?: {LABEL: [..]}}},
/// "distributed"?}`; lists of more than [`MAX_LISTED_INSTANCES`] addresses are omitted.
pub(super) fn job_json(plan: &JobPlan, seen: &[&RolePlan]) -> FilePlan {
    let mut text = Text::literal(format!("{{\"job\":{},\"roles\":{{", json!(plan.name)));
    for (number, role) in seen.iter().enumerate() {
        if number > 0 {
            text.push_str(",");
        }
        role_json(role, &mut text);
    }
    text.push_str("}");
    if let Some(distributed) = &plan.distributed {
        let members = distributed.members.iter().map(|member| {
            json!({
                "role": member.role,
                "part": member.part,
                "first_rank": member.first_rank,
                "processes": member.processes,
            })
        });
        let json = json!({
            "framework": framework_name(distributed.framework),
            "world_size": distributed.world_size,
            "members": members.collect::<Vec<_>>(),
        });
        text.push_str(&format!(",\"distributed\":{json}"));
    }
    text.push_str("}\n");
    FilePlan { path: PATH.to_owned(), content: FileContent::Text(text), mode: 0o644 }
}

fn role_json(role: &RolePlan, text: &mut Text) {
    text.push_str(&format!("{}:{{\"instances\":{}", json!(role.name), role.instances));
    if let Some(matrix) = &role.matrix {
        text.push_str(&format!(",\"matrix\":{}", json!(matrix.values)));
    }
    if role.instances <= MAX_LISTED_INSTANCES {
        text.push_str(",\"hosts\":[");
        text.push_reference(list(role, None));
        text.push_str("]");
        if !role.ports.is_empty() {
            text.push_str(",\"endpoints\":{");
            for (number, port) in role.ports.iter().enumerate() {
                let comma = if number > 0 { "," } else { "" };
                text.push_str(&format!("{comma}{}:[", json!(port.label)));
                text.push_reference(list(role, Some(&port.label)));
                text.push_str("]");
            }
            text.push_str("}");
        }
    }
    text.push_str("}");
}

fn list(role: &RolePlan, label: Option<&str>) -> Reference {
    Reference::Hosts {
        role: role.name.clone(),
        label: label.map(str::to_owned),
        before: "\"".to_owned(),
        after: "\"".to_owned(),
        separator: ",".to_owned(),
    }
}
