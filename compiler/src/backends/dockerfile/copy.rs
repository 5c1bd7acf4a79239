//! Files of the build context and of other images.

use jobc_schema::Pointer;
use jobc_schema::image::Copy;
use jobc_schema::reference::Parts;

use crate::diagnostic::{Diagnostic, codes};
use crate::emit::dockerfile::Kind;

use super::build::Build;

impl Build<'_> {
    /// `COPY`; a relative `to` is below the working directory, or below the root where none is set.
    pub(super) fn copy(&mut self, copy: &Copy, owner: Option<&str>, in_directory: bool, at: &Pointer) {
        let fine = [(&copy.from, "from"), (&copy.to, "to")]
            .into_iter()
            .all(|(path, key)| self.one_line(path, &at.key(key), "a path"));
        if !fine || (copy.image.is_none() && !self.take(&copy.from, &at.key("from"))) {
            return;
        }
        let to = if in_directory || copy.to.starts_with(['/', '$']) {
            copy.to.clone()
        } else {
            format!("/{}", copy.to.trim_start_matches("./"))
        };
        // A reference without a tag would be read as the name of a stage.
        let from = copy.image.as_ref().map(|image| {
            let parts = Parts::of(image);
            if parts.tag.or(parts.digest).is_some() { image.clone() } else { format!("{image}:latest") }
        });
        let chown = copy.owner.clone().or_else(|| owner.map(str::to_owned));
        let sources = vec![copy.from.clone()];
        self.push(Kind::Copy { from, chown, chmod: copy.mode.clone(), sources, to }, at);
    }

    /// Notes that the image needs a path of the context; refuses a path that is not in it.
    pub(super) fn take(&mut self, path: &str, at: &Pointer) -> bool {
        let Some(inside) = inside_context(path) else {
            self.sink.push(
                Diagnostic::error(
                    codes::BUILD_OUTSIDE_CONTEXT,
                    format!("`{path}` is outside the build context"),
                )
                .at(at, "the context is the directory of the job file")
                .note("put the file below the job file's directory, or mount it with `data`"),
            );
            return false;
        };
        let pattern = inside.contains(['*', '?', '[']);
        // An earlier pass has reported a file that is not there.
        if !pattern && !self.context.files.exists(inside.as_str().into()) {
            return false;
        }
        self.copied.push(inside);
        true
    }
}

/// A path of the context without `./` and `..`; nothing where it leads out.
pub(super) fn inside_context(path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(if parts.is_empty() { ".".into() } else { parts.join("/") })
}
