//! J0372: checks before a command that need what the image does not have.

use jobc_schema::plan::{BuildStep, CheckPlan, ImagePlan, ImageSource};
use jobc_schema::reference::{Parts, Reference};

use super::no_program::is_without_python;
use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::resolve::check_name;

/// Warns where an image is known not to have Python, PyTorch or a shell.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in view.roles.iter().filter(|role| !role.plan.preflight.is_empty()) {
        let Some(image) = view.plan.image_of(role.plan) else { continue };
        let Some((reference, at)) = view.base(image) else { continue };
        let is_torch =
            |check: &CheckPlan| matches!(check, CheckPlan::Matmul {} | CheckPlan::Allreduce { .. });
        let is_python = |check: &CheckPlan| {
            is_torch(check) || matches!(check, CheckPlan::Network { .. } | CheckPlan::Clock { .. })
        };
        let first = |is: &dyn Fn(&CheckPlan) -> bool| role.plan.preflight.iter().find(|check| is(check));
        let found = if lacks_shell(reference) {
            Some(("`preflight`".to_owned(), "`sh`", "an image with a shell"))
        } else if let Some(check) = first(&is_python).filter(|_| is_without_python(image, reference)) {
            Some((
                format!("`{}`", check_name(check)),
                "Python",
                "an image with Python, such as `python:3.12-slim`",
            ))
        } else {
            first(&is_torch).filter(|_| lacks_torch(image, reference)).map(|check| {
                let instead = "an image with PyTorch, or install it: `python: {packages: [torch]}`";
                (format!("`{}`", check_name(check)), "PyTorch", instead)
            })
        };
        if let Some((check, program, instead)) = found {
            let message = format!("{check} needs {program}, which is not in the image `{reference}`");
            sink.push(
                Diagnostic::warning(codes::PREFLIGHT_PROGRAM, message)
                    .at(&role.at().key("preflight"), "")
                    .at(&at, "the image")
                    .note(format!("use {instead}, or leave the check out")),
            );
        }
    }
}

/// Whether an image has only what its program needs.
fn lacks_shell(reference: &str) -> bool {
    Parts::of(reference).name.contains("distroless")
}

/// Whether an image is that of Python alone, without packages.
fn lacks_torch(image: &ImagePlan, reference: &str) -> bool {
    let name = Parts::of(reference).name.parse::<Reference>();
    let is_bare = match &image.source {
        ImageSource::Reference {} => true,
        ImageSource::Build { steps, .. } => {
            steps.iter().all(|step| matches!(step, BuildStep::Apt(_) | BuildStep::Workdir(_)))
        }
        _ => false,
    };
    is_bare && name.is_ok_and(|name| name.short_repository() == "python")
}
