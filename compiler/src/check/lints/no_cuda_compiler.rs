//! J0347: nvcc in an image without it.

use jobc_schema::plan::{BuildStep, ImagePlan, ImageSource};

use crate::check::command::{Command, split};
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::stdlib::images;

/// Packages that contain nvcc.
const COMPILER_PACKAGES: [&str; 5] =
    ["cuda-nvcc", "nvidia-cuda-nvcc", "cuda-toolkit", "cudatoolkit-dev", "cuda-compiler"];

/// Warns where a build step or a command starts nvcc, and the image is one without the compiler.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(image) = view.plan.image_of(role.plan) else { continue };
        let Some((reference, at)) = view.base(image) else { continue };
        let Some(facts) = images::facts(reference) else { continue };
        let runtime = facts.flavour.as_deref().is_some_and(|flavour| flavour != "devel");
        if facts.gpu && !runtime || installs_compiler(role, image) {
            continue;
        }
        let steps = match &image.source {
            ImageSource::Build { steps, .. } => &steps[..],
            _ => &[],
        };
        let in_build = steps.iter().any(|step| matches!(step, BuildStep::Run(text) if starts(&split(text))));
        if !in_build && !starts(&role.commands) {
            continue;
        }
        let message = format!("`nvcc` is not in the image `{reference}`");
        let mut found = Diagnostic::warning(codes::NO_CUDA_COMPILER, message).at(&at, "");
        if !in_build {
            found = found.at(&role.run_at(), "started here");
        }
        found = match facts.flavour.as_deref() {
            Some(flavour) => {
                let better = devel(reference, flavour);
                found
                    .note(format!("write `{better}`"))
                    .write(Location::inside(&at, reference, 0..reference.len()), &better)
            }
            None => found
                .note("use an image with the CUDA toolkit, such as `nvidia/cuda` with `devel` in its tag"),
        };
        sink.push(found);
    }
}

/// The same image with the compiler: the last `-runtime` of the tag becomes `-devel`.
fn devel(reference: &str, flavour: &str) -> String {
    match reference.rsplit_once(&format!("-{flavour}")) {
        Some((before, after)) => format!("{before}-devel{after}"),
        None => reference.to_owned(),
    }
}

fn starts(commands: &[Command]) -> bool {
    commands
        .iter()
        .any(|command| command.words.first().is_some_and(|word| word == "nvcc" || word.ends_with("/nvcc")))
}

/// Whether a build step or the command itself may install the compiler.
fn installs_compiler(role: &RoleView<'_>, image: &ImagePlan) -> bool {
    let names = |text: &str| COMPILER_PACKAGES.iter().any(|package| text.contains(package));
    let ImageSource::Build { steps, .. } = &image.source else { return names(&role.text) };
    names(&role.text)
        || steps.iter().any(|step| match step {
            BuildStep::Python(python) => {
                python.requirements.is_some() || python.packages.iter().any(|package| names(package))
            }
            BuildStep::Conda(conda) => {
                conda.file.is_some() || conda.packages.iter().any(|package| names(package))
            }
            BuildStep::Apt(packages) => packages.iter().any(|package| names(package)),
            BuildStep::Copy(copy) => copy.image.is_some(),
            BuildStep::Run(text) => names(text),
            BuildStep::Env(_) | BuildStep::Workdir(_) | BuildStep::User(_) => false,
        })
}
