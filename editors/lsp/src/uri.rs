//! `file:` URIs and paths.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use lsp_types::Uri;

/// The path of a `file:` URI of this host, without `.` and `..`; none for `untitled:` and others.
pub(crate) fn path(uri: &Uri) -> Option<Utf8PathBuf> {
    let rest = uri.0.strip_prefix("file://")?;
    let path = &rest[rest.find('/')?..];
    let path = path.split(['?', '#']).next().unwrap_or(path);
    Some(normal(Utf8Path::new(&decoded(path)?)))
}

/// The URI of an absolute path, as VS Code and most others write it.
pub(crate) fn of(path: &Utf8Path) -> Uri {
    let mut text = String::from("file://");
    for byte in path.as_str().bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                text.push(byte.into());
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    Uri(text)
}

/// A path without `.` and `..`, lexically.
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

/// Decodes `%20` and the like; none if the bytes are not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let pair = tail.get(..2).filter(|_| *first == b'%').and_then(|pair| std::str::from_utf8(pair).ok());
        if let Some(byte) = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            bytes.push(byte);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_paths() {
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
