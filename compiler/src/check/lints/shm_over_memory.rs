//! J0310: more shared memory than memory.

use jobc_schema::Bytes;

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Refuses a `shm` that can never be filled: it counts inside `memory`.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let resources = &role.plan.resources;
        let (Some(shm), Some(memory)) = (resources.shm_bytes, resources.memory_bytes) else { continue };
        if shm <= memory {
            continue;
        }
        let at = role.at().key("resources");
        let message =
            format!("`shm` of {} is more than `memory` of {}, which includes it", Bytes(shm), Bytes(memory));
        sink.push(
            Diagnostic::error(codes::SHM_OVER_MEMORY, message)
                .at(&at.key("shm"), "")
                .at(&at.key("memory"), "the whole memory of an instance")
                .note(format!(
                    "write a smaller `shm`, or a `memory` of {} and what the program needs besides",
                    Bytes(shm)
                )),
        );
    }
}
