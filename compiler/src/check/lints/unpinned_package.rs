//! J0334: pip packages without a version.

use jobc_schema::Pointer;
use jobc_schema::plan::{BuildStep, ImageSource};

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::suggest;

/// Notes packages that a later build may install in another version.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for image in view.plan.images.values() {
        let ImageSource::Build { steps, .. } = &image.source else { continue };
        let own_order = view.image_block(image).is_some_and(|block| !block.steps.is_empty());
        for (index, step) in steps.iter().enumerate() {
            let BuildStep::Python(python) = step else { continue };
            let loose: Vec<&str> =
                python.packages.iter().map(String::as_str).filter(|p| is_loose(p)).collect();
            if loose.is_empty() {
                continue;
            }
            let above = if own_order {
                image.declared_at.key("steps").index(index)
            } else {
                image.declared_at.clone()
            };
            sink.push(report(&loose, &above.keys(["python", "packages"])));
        }
    }
}

fn report(loose: &[&str], at: &Pointer) -> Diagnostic {
    let (verb, what) = if loose.len() == 1 { ("has", "its") } else { ("have", "their") };
    let message = format!(
        "{} {verb} no fixed version: a later build may install another",
        suggest::list(loose.iter().copied())
    );
    Diagnostic::info(codes::UNPINNED_PACKAGE, message)
        .at(at, "")
        .note(format!("write {what} version with `==`, or list all in a requirements file"))
}

/// Whether pip may choose the version; paths, addresses and options are ignored.
fn is_loose(package: &str) -> bool {
    let elsewhere =
        package.starts_with(['-', '.', '/', '$']) || package.contains("://") || package.contains(" @ ");
    !elsewhere && !package.contains("==") && !package.contains(".whl")
}
