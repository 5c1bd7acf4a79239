//! Labels and annotations with the provenance of an image.

use std::borrow::Cow;

use camino::Utf8Path;
use jobc_compiler::provenance::SourceState;
use jobc_image::build::FetchedContext;

use crate::runtime::args::image::BuildArgs;
use crate::source_state::{public_url, source_state};

/// The names that the image specification defines (annotations.md), and one of jobc: `org.opencontainers.image.version`
/// is that of the software in the image.
const REVISION: &str = "org.opencontainers.image.revision";
const SOURCE: &str = "org.opencontainers.image.source";
const VERSION: &str = "dev.jobc.version";

/// The arguments with these labels, if they are requested. A fetched context comes with the arguments that name its
/// repository.
pub(super) fn labeled<'a>(
    args: &'a BuildArgs,
    fetched: Option<(&BuildArgs, &FetchedContext)>,
) -> Cow<'a, BuildArgs> {
    if !args.more.provenance {
        return Cow::Borrowed(args);
    }
    let source = match fetched {
        Some((given, fetched)) => Some(SourceState {
            revision: fetched.commit().to_owned(),
            is_dirty: Some(false),
            url: given.context.to_str().and_then(public_url),
        }),
        None => Utf8Path::from_path(&args.context).and_then(source_state),
    };
    let labels = labels(source.as_ref());
    let mut args = args.clone();
    // The user's own come later, and win.
    args.label.splice(0..0, labels.iter().cloned());
    args.more.annotation.splice(0..0, labels);
    Cow::Owned(args)
}

fn labels(source: Option<&SourceState>) -> Vec<String> {
    let mut labels = vec![format!("{VERSION}={}", env!("CARGO_PKG_VERSION"))];
    if let Some(source) = source {
        // Other builders mark a modified working tree in the same way.
        let dirty = if source.is_dirty == Some(true) { "-dirty" } else { "" };
        labels.push(format!("{REVISION}={}{dirty}", source.revision));
        labels.extend(source.url.as_ref().map(|url| format!("{SOURCE}={url}")));
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_from_the_commit_mark_it() {
        let mut source = SourceState { revision: "ab".to_owned(), is_dirty: Some(true), url: None };
        assert_eq!(labels(Some(&source))[1], "org.opencontainers.image.revision=ab-dirty");
        source.is_dirty = None;
        assert_eq!(labels(Some(&source))[1], "org.opencontainers.image.revision=ab");
        assert_eq!(labels(None).len(), 1);
    }
}
