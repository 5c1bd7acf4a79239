//! J0333: an image whose content changes under its name.

use jobc_schema::Pointer;
use jobc_schema::plan::{BuildStep, ImageSource};
use jobc_schema::reference::Parts;

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns of `latest`, and of no tag, which means `latest`; a digest is fine.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for image in view.plan.images.values() {
        if matches!(image.source, ImageSource::Dockerfile { .. }) || is_file(&image.reference, view) {
            continue;
        }
        if let Some((reference, at)) = view.base(image) {
            look(reference, &at, sink);
        }
        let ImageSource::Build { steps, .. } = &image.source else { continue };
        let own_order = view.image_block(image).is_some_and(|block| !block.steps.is_empty());
        let mut copies = 0;
        for (index, step) in steps.iter().enumerate() {
            let BuildStep::Copy(copy) = step else { continue };
            let at = if own_order {
                image.declared_at.key("steps").index(index).keys(["copy", "image"])
            } else {
                image.declared_at.key("copy").index(copies).key("image")
            };
            copies += 1;
            if let Some(reference) = &copy.image {
                look(reference, &at, sink);
            }
        }
    }
}

/// Whether a name is that of a file in the directory `images` of a target for Slurm.
fn is_file(reference: &str, view: &View<'_>) -> bool {
    let settings = view.plan.target.settings.slurm.as_ref();
    settings.is_some_and(|settings| settings.images.is_some())
        && [".sqsh", ".sif"].iter().any(|ending| reference.ends_with(ending))
}

fn look(reference: &str, at: &Pointer, sink: &mut Sink) {
    let parts = Parts::of(reference);
    if parts.digest.is_some() || reference == "scratch" {
        return;
    }
    let what = match parts.tag {
        None => format!("the image `{reference}` has no tag, which means `latest`"),
        Some("latest") => format!("the tag of the image `{reference}` can change"),
        Some(_) => return,
    };
    sink.push(
        Diagnostic::warning(
            codes::MUTABLE_TAG,
            format!("{what}: a later run of the same job may use another image"),
        )
        .at(at, "")
        .note("write the tag of a version, or a digest: `NAME@sha256:…`"),
    );
}
