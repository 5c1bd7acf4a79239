//! `file:` URIs and paths.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use jobc_schema::percent;
use lsp_types::Uri;

/// The path of a `file:` URI on this host, without `.` and `..`; `None` for `untitled:` and others.
pub(crate) fn path(uri: &Uri) -> Option<Utf8PathBuf> {
    let rest = uri.0.strip_prefix("file://")?;
    let path = &rest[rest.find('/')?..];
    let path = path.split(['?', '#']).next().unwrap_or(path);
    Some(normal(Utf8Path::new(&percent::decode(path)?)))
}

/// The URI of an absolute path, as VS Code and most others write it.
pub(crate) fn of(path: &Utf8Path) -> Uri {
    Uri(format!("file://{}", percent::encode_path(path.as_str())))
}

/// A path without `.` and `..`, normalized lexically.
pub(crate) fn normal(path: &Utf8Path) -> Utf8PathBuf {
    let mut out = Utf8PathBuf::new();
    for part in path.components() {
        match part {
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir => _ = out.pop(),
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_and_paths() {
        let check = |uri: &str, expected: Option<&str>| {
            assert_eq!(path(&uri.into()).as_deref(), expected.map(Utf8Path::new), "{uri}");
        };
        check("file:///home/a/job.yaml", Some("/home/a/job.yaml"));
        check("file://localhost/a%20b/%E5%90%8D.yaml", Some("/a b/名.yaml"));
        check("file:///a/./b/../job.yaml#L3", Some("/a/job.yaml"));
        check("file:///a/100%.yaml", Some("/a/100%.yaml"));
        check("file:///%ff", None);
        check("untitled:Untitled-1", None);
        check("file://host", None);
        for name in ["/home/a/job.yaml", "/a b/名 +#?%.yaml"] {
            assert_eq!(path(&of(name.into())).as_deref(), Some(Utf8Path::new(name)));
        }
    }
}
