//! J0386: a command for GPUs in a role that requests none.

use crate::check::command::Command;
use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::stdlib::images;

/// Flags that select a device.
const DEVICES: [&str; 3] = ["--device", "--accelerator", "--trainer.accelerator"];

/// Flags for a number of GPUs.
const COUNTS: [&str; 4] = ["--gpus", "--num-gpus", "--n-gpus", "--ngpus"];

/// Warns where the program would see no GPU, and only says so when it runs.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in view.roles.iter().filter(|role| role.plan.resources.gpu.is_none()) {
        // J0328 is about the images that are made for GPUs.
        let reference = view.plan.image_of(role.plan).and_then(|image| view.base(image));
        if reference.is_some_and(|(name, _)| images::facts(name).is_some_and(|facts| facts.gpu)) {
            continue;
        }
        // `nvidia-smi || true` may fail.
        let Some(words) = role.commands.iter().find_map(words).filter(|_| !role.text.contains("||")) else {
            continue;
        };
        let message =
            format!("`{words}` needs a GPU, and role `{}` requests none and sees none", role.plan.name);
        sink.push(
            Diagnostic::warning(codes::GPU_NOT_REQUESTED, message)
                .at(&role.run_at(), "")
                .note("write `gpu: 1` under `resources`")
                .set(&role.at().keys(["resources", "gpu"]), 1),
        );
    }
}

/// The words of a command that ask for a GPU.
fn words(command: &Command) -> Option<String> {
    if command.program() == "nvidia-smi" {
        return Some("nvidia-smi".to_owned());
    }
    let is_gpu = |device: &str| device == "gpu" || device == "cuda" || device.starts_with("cuda:");
    let on_device = command.one_of(&DEVICES).filter(|(_, device)| is_gpu(device));
    let counted = || command.one_of(&COUNTS).filter(|(_, count)| count.parse::<u32>().is_ok_and(|n| n > 0));
    let (flag, value) = on_device.or_else(counted)?;
    Some(format!("{flag} {value}"))
}
