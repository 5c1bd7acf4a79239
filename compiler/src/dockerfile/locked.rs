//! The images that a Dockerfile names, and their digests in `jobc.lock`.
//!
//! The file's lines stay as they are; a builder that knows the digests pulls the images by digest.

use indexmap::IndexMap;
use jobc_dockerfile::{ImageOrStage, Inspection};

use super::request::Request;
use crate::diagnostic::{Location, Sink};

/// The digests of the images that the file names, in order; an image without a required digest is
/// reported.
pub(super) fn locked(file: &Inspection, request: &Request<'_>, sink: &mut Sink) -> IndexMap<String, String> {
    let mut found = IndexMap::new();
    for stage in file.stages.iter().filter(|stage| stage.by_platform) {
        request.lock.refuse_hidden(Location::Span(request.span(&stage.base)), sink);
    }
    for stage in &file.stages {
        // `FROM`, `COPY --from`, `RUN --mount=from=`.
        let base = Some(&stage.from).filter(|_| !stage.by_platform);
        let taken = stage.instructions.iter().flat_map(jobc_dockerfile::Instruction::sources);
        for from in base.into_iter().chain(taken) {
            if let ImageOrStage::Image { reference, span, .. } = from
                && let Some(digest) = request.lock.digest(reference, Location::Span(request.span(span)), sink)
            {
                found.insert(reference.clone(), digest.to_owned());
            }
        }
    }
    found
}
