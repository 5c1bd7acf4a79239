//! J0504: images that cannot have the signature which the policy of the target requires.

use jobc_schema::plan::ImageSource;
use jobc_schema::reference::Parts;

use crate::check::signature;
use crate::check::view::View;
use crate::diagnostic::Sink;

/// Rejects images without a digest, because signatures are for digests. The signatures themselves are in registries,
/// which the compiler does not access.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let policy = view.plan.target.settings.policy.as_ref();
    if policy.and_then(|policy| policy.require_signature.as_ref()).is_none() {
        return;
    }
    for image in view.plan.images.values() {
        let mut refuse = |why: &str, note: &str| {
            sink.push(signature::refusal(view.plan, image, why).note(note));
        };
        match &image.source {
            ImageSource::File { path } => {
                refuse(&format!("`{path}` is not in a registry"), "push it and sign it there");
            }
            ImageSource::Dockerfile { path, base: None, .. } => {
                refuse(
                    &format!("the base image of `{path}` is not known"),
                    "name it in the Dockerfile without arguments that have no value",
                );
            }
            _ => {}
        }
        for reference in signature::references(image) {
            if Parts::of(&reference).digest.is_none() {
                refuse(
                    &format!("the image `{reference}` has no digest"),
                    "run `jobc lock`, or write `NAME:TAG@sha256:…`",
                );
            }
        }
    }
}
