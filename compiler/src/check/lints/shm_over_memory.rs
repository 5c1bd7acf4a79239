//! J0310: more memory in file systems than memory.

use jobc_schema::{Bytes, Pointer};

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Refuses a `shm` and directories in memory that can never be filled: they count inside `memory`.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let resources = &role.plan.resources;
        let Some(memory) = resources.memory_bytes else { continue };
        let directories: Vec<(&str, u64)> = view.plan.in_memory(role.plan).collect();
        let shm = resources.shm_bytes;
        let all = directories.iter().map(|(_, bytes)| *bytes).chain(shm).fold(0, u64::saturating_add);
        if all <= memory {
            continue;
        }
        let at = role.at().key("resources");
        let (what, write) = match (&directories[..], shm) {
            ([], _) => (format!("`shm` of {} is", Bytes(all)), "`shm`"),
            (_, None) => (format!("directories in memory of {} are", Bytes(all)), "size"),
            _ => (format!("`shm` and directories in memory, {} in total, are", Bytes(all)), "size"),
        };
        let includes = if directories.is_empty() { "it" } else { "them" };
        let message = format!("{what} more than `memory` of {}, which includes {includes}", Bytes(memory));
        let mut found = Diagnostic::error(codes::SHM_OVER_MEMORY, message);
        for (name, _) in &directories {
            found = found.at(&Pointer::ROOT.keys(["data", name, "source"]), "");
        }
        if shm.is_some() {
            found = found.at(&at.key("shm"), "");
        }
        sink.push(found.at(&at.key("memory"), "the whole memory of an instance").note(format!(
            "write a smaller {write}, or a `memory` of {} and what the program needs besides",
            Bytes(all)
        )));
    }
}
