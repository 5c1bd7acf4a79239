//! J0328: an image made for GPUs, and no role that runs in it has one.

use std::collections::BTreeMap;

use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::stdlib::images;

/// Warns where GPUs were probably forgotten; notes if every role has `gpu: 0`.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let mut users: BTreeMap<&str, Vec<&RoleView<'_>>> = BTreeMap::new();
    for role in &view.roles {
        users.entry(&role.plan.image).or_default().push(role);
    }
    for (name, roles) in users {
        // One role with GPUs justifies the image; other roles may prepare and evaluate on CPUs.
        if roles.iter().any(|role| role.gpus() > 0) {
            continue;
        }
        let Some((reference, at)) = view.plan.images.get(name).and_then(|image| view.base(image)) else {
            continue;
        };
        if !images::facts(reference).is_some_and(|facts| facts.gpu) {
            continue;
        }
        let silent = roles.iter().find(|role| role.plan.resources.gpu.is_none());
        let diagnostic = if let Some(role) = silent {
            let message = format!(
                "the image `{reference}` is made for GPUs, but role `{}` requests none and sees none",
                role.plan.name
            );
            Diagnostic::warning(codes::IDLE_GPU_IMAGE, message)
                .at(&at, "")
                .at_key(&role.at(), "")
                .note("write `gpu: 1` under `resources`")
                .note("to run on CPUs, write `gpu: 0`")
                .set(&role.at().keys(["resources", "gpu"]), 1)
                .set(&role.at().keys(["resources", "gpu"]), 0)
        } else {
            let message =
                format!("the image `{reference}` is made for GPUs, and every role with it has `gpu: 0`");
            Diagnostic::info(codes::IDLE_GPU_IMAGE, message)
                .at(&at, "")
                .note("an image without CUDA is smaller and starts sooner")
        };
        sink.push(diagnostic);
    }
}
