//! J0312: less memory than a container needs to start.

use jobc_schema::Bytes;

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// The least that container engines accept (Docker's limit; runc's own start needs about as much).
const MIN_MEMORY: u64 = 6 << 20;

/// Refuses a memory that no container starts in.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(memory) = role.plan.resources.memory_bytes.filter(|&bytes| bytes < MIN_MEMORY) else {
            continue;
        };
        let message = format!(
            "`memory` of {} is less than a container needs to start, {}",
            Bytes(memory),
            Bytes(MIN_MEMORY)
        );
        sink.push(
            Diagnostic::error(codes::LITTLE_MEMORY, message)
                .at(&role.at().keys(["resources", "memory"]), "")
                .note("write for example `512MiB`; `MiB` and `GiB` are the usual units"),
        );
    }
}
