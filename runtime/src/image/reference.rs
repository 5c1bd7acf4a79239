//! References to images: `busybox`, `ghcr.io/org/app:1.2`, `nvcr.io/nvidia/pytorch@sha256:…`.
//!
//! The rules are those of the distribution project that every client follows; an absent registry is docker.io, and there a
//! name of one word stands below `library/`.

use std::fmt;
use std::str::FromStr;

use super::Digest;
use crate::error::{Error, Kind};

/// The registry of references that name none.
const DEFAULT_REGISTRY: &str = "docker.io";

/// The tag of references that name neither a tag nor a digest.
const DEFAULT_TAG: &str = "latest";

/// A reference to an image in a registry, with nothing left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    /// The registry: a host, with its port where it is not the usual one.
    pub registry: String,
    /// The repository: words between slashes.
    pub repository: String,
    /// The tag; there is a tag, a digest, or both.
    pub tag: Option<String>,
    /// The digest, which says what the tag must stand for where there are both.
    pub digest: Option<Digest>,
}

impl Reference {
    /// As short as people write it: `busybox:latest`.
    pub fn familiar(&self) -> String {
        let name = match self.registry.as_str() {
            DEFAULT_REGISTRY => {
                self.repository.strip_prefix("library/").unwrap_or(&self.repository).to_owned()
            }
            registry => format!("{registry}/{}", self.repository),
        };
        name + &self.suffix()
    }

    /// The same image by its digest alone.
    #[must_use]
    pub fn at(&self, digest: &Digest) -> Self {
        Self { tag: None, digest: Some(digest.clone()), ..self.clone() }
    }

    fn suffix(&self) -> String {
        let tag = self.tag.as_ref().map(|tag| format!(":{tag}")).unwrap_or_default();
        tag + &self.digest.as_ref().map(|digest| format!("@{digest}")).unwrap_or_default()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}{}", self.registry, self.repository, self.suffix())
    }
}

impl FromStr for Reference {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = |why: &str, help: &str| {
            Error::new(Kind::Config, format!("`{text}` names no image: {why}")).help(help.to_owned())
        };
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse::<Digest>()?)),
            None => (text, None),
        };
        // A colon after the last slash begins the tag; one before it, a port.
        let last = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match rest[last..].find(':') {
            Some(colon) => (&rest[..last + colon], Some(&rest[last + colon + 1..])),
            None => (rest, None),
        };
        if let Some(tag) = tag.filter(|tag| !is_tag(tag)) {
            return Err(refused(
                &format!("`{tag}` is no tag"),
                "a tag has up to 128 letters, digits, `_`, `.` and `-`, and begins with none of the last two",
            ));
        }
        let (registry, repository) = match name.split_once('/') {
            Some((first, rest)) if is_registry(first) => (first.to_owned(), rest.to_owned()),
            Some(_) => (DEFAULT_REGISTRY.to_owned(), name.to_owned()),
            None => (DEFAULT_REGISTRY.to_owned(), format!("library/{name}")),
        };
        let registry =
            if registry == "index.docker.io" { DEFAULT_REGISTRY.to_owned() } else { registry.to_lowercase() };
        if name.is_empty() {
            return Err(refused("it is empty", "write a name such as `python:3.12-slim`"));
        }
        if repository.len() > 255 || !repository.split('/').all(is_component) {
            let help = if repository.bytes().any(|byte| byte.is_ascii_uppercase()) {
                format!("names of images are in lower case: `{}`", text.to_lowercase())
            } else {
                "words of a name are lower-case letters and digits, with `.`, `_`, `__` or `-` between them"
                    .to_owned()
            };
            return Err(refused(&format!("`{repository}` is no repository"), &help));
        }
        let tag = match (tag, &digest) {
            (None, None) => Some(DEFAULT_TAG.to_owned()),
            (tag, _) => tag.map(str::to_owned),
        };
        Ok(Self { registry, repository, tag, digest })
    }
}

fn is_registry(word: &str) -> bool {
    (word.contains(['.', ':']) || word == "localhost")
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte))
}

fn is_tag(tag: &str) -> bool {
    (1..=128).contains(&tag.len())
        && !tag.starts_with(['.', '-'])
        && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// Lower-case letters and digits; between them one `.`, one or two `_`, or any number of `-`.
fn is_component(word: &str) -> bool {
    let known =
        word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte));
    let separators = word.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let ends = [word.chars().next(), word.chars().next_back()];
    known
        && ends.iter().all(|end| end.is_some_and(|c| c.is_ascii_alphanumeric()))
        && separators
            .filter(|between| !between.is_empty())
            .all(|between| matches!(between, "." | "_" | "__") || between.bytes().all(|byte| byte == b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, full: &str, familiar: &str) {
        let reference: Reference = text.parse().unwrap();
        assert_eq!((reference.to_string().as_str(), reference.familiar().as_str()), (full, familiar));
        assert_eq!(reference.to_string().parse::<Reference>().unwrap(), reference);
    }

    #[test]
    fn what_is_left_out_is_put_in() {
        check("busybox", "docker.io/library/busybox:latest", "busybox:latest");
        check("org/app:1.2", "docker.io/org/app:1.2", "org/app:1.2");
        check("localhost/app", "localhost/app:latest", "localhost/app:latest");
        check("127.0.0.1:5000/a/b__c:x", "127.0.0.1:5000/a/b__c:x", "127.0.0.1:5000/a/b__c:x");
        check("index.docker.io/library/a-b", "docker.io/library/a-b:latest", "a-b:latest");
        let digest = Digest::of(b"");
        check(&format!("a@{digest}"), &format!("docker.io/library/a@{digest}"), &format!("a@{digest}"));
        check(&format!("q.io/a:t@{digest}"), &format!("q.io/a:t@{digest}"), &format!("q.io/a:t@{digest}"));
    }

    #[test]
    fn what_names_no_image_says_why() {
        let check = |text: &str, part: &str| {
            let error = text.parse::<Reference>().unwrap_err();
            let all = format!("{}; {}", error.message, error.help.unwrap_or_default());
            assert!(all.contains(part), "{text}: {all}");
        };
        check("", "it is empty");
        check("Busybox", "in lower case: `busybox`");
        check("a:", "`` is no tag");
        check("a:-x", "`-x` is no tag");
        check("a//b", "is no repository");
        check("a..b", "is no repository");
        check("../../etc/passwd", "is no repository");
        check("a___b", "is no repository");
        check("a@sha256:12", "64 digits");
        check("bücher", "is no repository");
        check("a b", "is no repository");
    }
}
