//! J0358: directories of an instance that are larger than its disk.

use jobc_schema::{Bytes, Pointer};

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Refuses sizes that can never be used: what is on the disk of the host counts inside `disk`.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(disk) = role.plan.resources.disk_bytes else { continue };
        let all: Vec<(&str, u64)> = view.plan.scratch(role.plan).collect();
        let sum = all.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
        if sum <= disk {
            continue;
        }
        let at = role.at().keys(["resources", "disk"]);
        let message = format!(
            "the directories of each instance of role `{}` take {}, and `disk` is {}, which includes them",
            role.plan.name,
            Bytes(sum),
            Bytes(disk)
        );
        let mut found = Diagnostic::error(codes::SCRATCH_OVER_DISK, message).at(&at, "");
        for (name, _) in all {
            found = found.at(&Pointer::ROOT.keys(["data", name, "source"]), "counts against `disk`");
        }
        sink.push(
            found
                .note(format!("write a `disk` of {} and what the program writes elsewhere", Bytes(sum)))
                .set(&at, Bytes(sum).to_string()),
        );
    }
}
