//! Rejects roles of which two combinations write to the same place.

use std::collections::BTreeMap;

use jobc_schema::plan::RolePlan;
use jobc_schema::{Job, Pointer};

use crate::diagnostic::{Diagnostic, Sink, codes};

/// Reports each output that several combinations of a role write to, once per output and role.
pub(super) fn check_combinations(roles: &[RolePlan], job: &Job, sink: &mut Sink) {
    // By role, output and the directory in it: the first combination that writes there.
    let mut writers: BTreeMap<(&str, &str, Option<&str>), &RolePlan> = BTreeMap::new();
    let mut reported: Vec<(&str, &str)> = Vec::new();
    for role in roles.iter().filter(|role| role.matrix.is_some()) {
        for mount in role.mounts.iter().filter(|mount| mount.writable) {
            if !job.outputs.contains_key(&mount.volume) {
                continue;
            }
            let (declared, output) = (role.declared(), mount.volume.as_str());
            let first = *writers.entry((declared, output, mount.subpath.as_deref())).or_insert(role);
            if first.name == role.name || reported.contains(&(declared, output)) {
                continue;
            }
            reported.push((declared, output));
            let at = Pointer::ROOT.keys(["roles", declared]);
            let message = format!(
                "the combinations `{}` and `{}` both write to the output `{output}`",
                first.name, role.name
            );
            let axes = role.matrix.iter().flat_map(|matrix| matrix.values.keys());
            let parts: Vec<String> = axes.map(|axis| format!("{axis}-${{{{ matrix.{axis} }}}}")).collect();
            let directory = parts.join("-");
            let mut diagnostic = Diagnostic::error(codes::MATRIX_OUTPUT, message)
                .at_key(&at.key("matrix"), "the combinations of this role")
                .at_key(&Pointer::ROOT.keys(["outputs", output]), "the output")
                .note(format!(
                    "give each a directory in it, as in `outputs: {{{output}: {{subpath: \"{directory}\"}}}}` of the role; a role that writes none of them takes `outputs: []`"
                ));
            // With several outputs, a map with only one would drop the others.
            if job.outputs.len() == 1 && job.roles.get(&role.name).is_some_and(|role| role.outputs.is_none())
            {
                let own = serde_json::json!({output: {"subpath": directory}});
                diagnostic = diagnostic.set(&at.key("outputs"), own);
            }
            sink.push(diagnostic);
        }
    }
}
