//! J0315: a GPU role that leaves its memory to the cluster.

use jobc_schema::BackendName;

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Notes that a pod without a memory request is the first to be evicted from a full node.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    if !view.has_backend(BackendName::Kubernetes) {
        return;
    }
    for role in view.roles.iter().filter(|role| role.gpus() > 0) {
        if role.plan.resources.memory_bytes.is_some() {
            continue;
        }
        let message = format!(
            "role `{}` requests GPUs but sets no `memory`: its pods are the first to be killed when a node runs out of memory",
            role.plan.name
        );
        sink.push(
            Diagnostic::info(codes::GPU_WITHOUT_MEMORY, message)
                .at_key(&role.at().key("resources"), "")
                .note("write for example `memory: 32GiB`"),
        );
    }
}
