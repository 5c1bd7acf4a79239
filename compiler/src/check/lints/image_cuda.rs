//! J0320: an image whose CUDA version is older than the program needs.

use crate::check::gpu::{image_toolkit, program_toolkit};
use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns if `gpu.cuda` requires a newer version than the image has.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(needed) = program_toolkit(role) else { continue };
        let Some(image) = image_toolkit(view, role) else { continue };
        if image.version.truncate(needed.version.precision()) >= needed.version {
            continue;
        }
        let message = format!(
            "{} has CUDA {}, but `gpu.cuda` of role `{}` requests {}",
            image.whose, image.version, role.plan.name, needed.version
        );
        sink.push(
            Diagnostic::warning(codes::IMAGE_CUDA, message)
                .at(&needed.at, "")
                .at(&image.at, "the image's version")
                .note(format!(
                    "use an image with CUDA {} or later, or request the CUDA that the program uses",
                    needed.version
                )),
        );
    }
}
