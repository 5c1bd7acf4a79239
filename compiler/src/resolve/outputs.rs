//! No two combinations of a role write to one place.

use std::collections::BTreeMap;

use jobc_schema::plan::RolePlan;
use jobc_schema::{Job, Pointer};

use crate::diagnostic::{Diagnostic, Sink, codes};

/// Reports outputs that several combinations of a role write to; once for each output and role.
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
            let axis = role.matrix.iter().flat_map(|matrix| matrix.values.keys()).next();
            let axis = axis.map_or("x", String::as_str);
            let message = format!(
                "the combinations `{}` and `{}` both write to the output `{output}`",
                first.name, role.name
            );
            let directory = format!("{axis}-${{{{ matrix.{axis} }}}}");
            sink.push(
                Diagnostic::error(codes::MATRIX_OUTPUT, message)
                    .at_key(&at.key("matrix"), "the combinations of this role")
                    .at_key(&Pointer::ROOT.keys(["outputs", output]), "the output")
                    .note(format!(
                        "give each a directory in it, as in `outputs: {{{output}: {{subpath: \"{directory}\"}}}}` of the role; or write `outputs: []` where it writes none"
                    )),
            );
        }
    }
}
