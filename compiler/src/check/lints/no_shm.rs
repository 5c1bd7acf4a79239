//! J0311: a GPU role with the small default shared memory of a pod.

use jobc_schema::BackendName;

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Notes that data loaders and NCCL get 64 MiB of /dev/shm on Kubernetes.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    if !view.has_backend(BackendName::Kubernetes) {
        return;
    }
    for role in view.roles.iter().filter(|role| role.gpus() > 0) {
        if role.plan.resources.shm_bytes.is_some() {
            continue;
        }
        let message = format!(
            "role `{}` sets no `shm`: a pod has 64 MiB of /dev/shm, and data loaders with workers fail with a bus error",
            role.plan.name
        );
        sink.push(
            Diagnostic::info(codes::NO_SHM, message)
                .at_key(&role.at().key("resources"), "")
                .note("write for example `shm: 8GiB`; it counts against `memory`"),
        );
    }
}
