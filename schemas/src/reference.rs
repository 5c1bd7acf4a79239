//! References to images: `busybox`, `ghcr.io/org/app:1.2`, `nvcr.io/nvidia/pytorch@sha256:…`.
//!
//! The rules are those of the distribution project that every client follows; an absent registry is docker.io, and
//! there a name of one word is below `library/`.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::digest::{Digest, DigestError};

/// The registry of references that name none.
const DEFAULT_REGISTRY: &str = "docker.io";

/// Another name of it, which old clients write.
const INDEX: &str = "index.docker.io";

/// The tag of references that name neither a tag nor a digest.
const DEFAULT_TAG: &str = "latest";

/// Where docker.io keeps the repositories of one word.
const OFFICIAL: &str = "library/";

/// The length of a repository, in bytes.
const MAX_REPOSITORY: usize = 255;

/// The length of a tag, in bytes.
const MAX_TAG: usize = 128;

/// A reference to an image in a registry, with nothing left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    /// The registry: a host, with its port where it is not the usual one.
    pub registry: String,
    /// The repository: words between slashes.
    pub repository: String,
    /// The tag; there is a tag, a digest, or both.
    pub tag: Option<String>,
    /// The digest. If there is also a tag, the tag must refer to this digest.
    pub digest: Option<Digest>,
}

impl Reference {
    /// The repository without the `library/` of official images: `python`, `nvidia/cuda`.
    pub fn short_repository(&self) -> &str {
        self.repository.strip_prefix(OFFICIAL).unwrap_or(&self.repository)
    }

    /// As short as people write it: `busybox:latest`.
    pub fn familiar(&self) -> String {
        let name = match self.registry.as_str() {
            DEFAULT_REGISTRY => self.short_repository().to_owned(),
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
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let refused = |why, span| Err(ReferenceError { text: text.to_owned(), why, span });
        let Parts { name, tag, digest } = Parts::of(text);
        let digest = match digest.map(str::parse::<Digest>) {
            Some(Ok(digest)) => Some(digest),
            Some(Err(error)) => {
                let start = text.len() - error.text.len();
                return refused(ReferenceFault::Digest(error), start..text.len());
            }
            None => None,
        };
        if let Some(tag) = tag.filter(|tag| !is_tag(tag)) {
            return refused(ReferenceFault::Tag(tag.to_owned()), wrong_in_tag(name.len() + 1, tag));
        }
        let (registry, path) = split_registry(name);
        let repository = if name.contains('/') { path.to_owned() } else { format!("{OFFICIAL}{name}") };
        let registry = registry.to_lowercase();
        if name.is_empty() {
            return refused(ReferenceFault::Empty, 0..text.len());
        }
        let start = name.len() - path.len();
        if let Some(wrong) = wrong_in_path(path) {
            let lower = wrong_in_path(&path.to_ascii_lowercase()).is_none();
            let why = if lower {
                ReferenceFault::Uppercase(repository)
            } else {
                ReferenceFault::Repository(repository)
            };
            return refused(why, start + wrong.start..start + wrong.end);
        }
        if repository.len() > MAX_REPOSITORY {
            return refused(ReferenceFault::TooLong(repository), start..name.len());
        }
        let tag = match (tag, &digest) {
            (None, None) => Some(DEFAULT_TAG.to_owned()),
            (tag, _) => tag.map(str::to_owned),
        };
        Ok(Self { registry, repository, tag, digest })
    }
}

/// A reference as it is written: without defaults and without validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The registry, where it is named, and the repository.
    pub name: &'a str,
    /// The text after the colon after the last slash; a colon before that begins a port.
    pub tag: Option<&'a str>,
    /// The text after the `@`.
    pub digest: Option<&'a str>,
}

impl<'a> Parts<'a> {
    /// Splits a reference into its parts.
    pub fn of(text: &'a str) -> Self {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        let last = rest.rfind('/').map_or(0, |slash| slash + 1);
        match rest[last..].find(':') {
            Some(colon) => {
                let (name, tag) = rest.split_at(last + colon);
                Self { name, tag: Some(&tag[1..]), digest }
            }
            None => Self { name: rest, tag: None, digest },
        }
    }
}

/// The error for text that is not an image reference.
///
/// It has two forms. `Display` and [`ReferenceError::help`] are for an image on the command line;
/// [`ReferenceError::finding`] is for an image in a file, where the place is shown too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: ReferenceFault,
    /// Where in the text, in bytes; empty where something is missing at the end.
    pub span: Range<usize>,
}

/// What can be wrong with a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceFault {
    /// There is no name.
    Empty,
    /// The repository has capital letters and is fine otherwise.
    Uppercase(String),
    /// The repository has an invalid component.
    Repository(String),
    /// The repository is longer than 255 characters.
    TooLong(String),
    /// The text after the colon is not a tag.
    Tag(String),
    /// The text after the `@` is not a digest.
    Digest(DigestError),
}

impl ReferenceError {
    /// The finding in the wording of the distribution project, which every registry client prints.
    pub fn finding(&self) -> String {
        let more = match &self.why {
            ReferenceFault::Empty => ": repository name must have at least one component",
            ReferenceFault::Uppercase(_) => ": repository name must be lowercase",
            ReferenceFault::TooLong(_) => ": repository name must not be more than 255 characters",
            ReferenceFault::Repository(_) | ReferenceFault::Tag(_) | ReferenceFault::Digest(_) => "",
        };
        format!("`{}` is not an image reference: invalid reference format{more}", self.text)
    }

    /// What to write instead.
    pub fn help(&self) -> String {
        match &self.why {
            ReferenceFault::Empty => "write a name such as `python:3.12-slim`".to_owned(),
            ReferenceFault::Tag(_) => {
                "a tag has up to 128 letters, digits, `_`, `.` and `-`, and does not begin with `.` or `-`"
                    .to_owned()
            }
            ReferenceFault::Digest(error) => error.help().to_owned(),
            ReferenceFault::Uppercase(repository)
            | ReferenceFault::Repository(repository)
            | ReferenceFault::TooLong(repository)
                if repository.bytes().any(|byte| byte.is_ascii_uppercase()) =>
            {
                // A tag may have capitals.
                let name = Parts::of(&self.text).name;
                let rest = &self.text[name.len()..];
                format!("image names must be lowercase: `{}{rest}`", name.to_lowercase())
            }
            ReferenceFault::Uppercase(_) | ReferenceFault::Repository(_) | ReferenceFault::TooLong(_) => {
                "the parts of a name are lowercase letters and digits, separated by `.`, `_`, `__` or `-`"
                    .to_owned()
            }
        }
    }
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            ReferenceFault::Digest(error) => error.fmt(f),
            ReferenceFault::Empty => write!(f, "invalid image reference `{}`: it is empty", self.text),
            ReferenceFault::Tag(tag) => {
                write!(f, "invalid image reference `{}`: invalid tag `{tag}`", self.text)
            }
            ReferenceFault::Uppercase(repository)
            | ReferenceFault::Repository(repository)
            | ReferenceFault::TooLong(repository) => {
                write!(f, "invalid image reference `{}`: invalid repository `{repository}`", self.text)
            }
        }
    }
}

impl std::error::Error for ReferenceError {}

/// The registry of a reference, and what follows it. The reference need not be whole: its path, tag and digest may be
/// anything.
pub fn split_registry(reference: &str) -> (&str, &str) {
    match reference.split_once('/') {
        Some((INDEX, rest)) => (DEFAULT_REGISTRY, rest),
        Some((first, rest)) if is_registry(first) => (first, rest),
        _ => (DEFAULT_REGISTRY, reference),
    }
}

/// A host name or an address, with a port of digits.
fn is_registry(word: &str) -> bool {
    let port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((address, behind)) = word.strip_prefix('[').and_then(|word| word.split_once(']')) {
        let digits = address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':');
        return digits && (behind.is_empty() || behind.strip_prefix(':').is_some_and(port));
    }
    let (host, known) = match word.split_once(':') {
        Some((host, behind)) => (host, port(behind)),
        None => (word, word.contains('.') || word == "localhost"),
    };
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    known && host.split('.').all(label)
}

fn is_tag(tag: &str) -> bool {
    (1..=MAX_TAG).contains(&tag.len()) && !tag.starts_with(['.', '-']) && tag.chars().all(is_of_tag)
}

fn is_of_tag(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

/// The wrong part of a tag that begins at this byte of the reference.
fn wrong_in_tag(start: usize, tag: &str) -> Range<usize> {
    let found = match tag.char_indices().find(|&(at, c)| !is_of_tag(c) || (at == 0 && matches!(c, '.' | '-')))
    {
        Some((at, c)) => at..at + c.len_utf8(),
        None => 0..tag.len(),
    };
    start + found.start..start + found.end
}

/// The wrong part of a path of components.
fn wrong_in_path(path: &str) -> Option<Range<usize>> {
    let mut start = 0;
    for word in path.split('/') {
        if !is_component(word) {
            let of_word =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
            let found = match word.char_indices().find(|(_, c)| !of_word(*c)) {
                Some((at, c)) if c.is_ascii_uppercase() => {
                    let length = word[at..].bytes().take_while(u8::is_ascii_uppercase).count();
                    at..at + length
                }
                Some((at, c)) => at..at + c.len_utf8(),
                None => 0..word.len(),
            };
            return Some(start + found.start..start + found.end);
        }
        start += word.len() + 1;
    }
    None
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
    fn defaults_are_added() {
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
    fn invalid_references_have_a_reason() {
        let check = |text: &str, part: &str| {
            let error = text.parse::<Reference>().unwrap_err();
            let all = format!("{error}; {}", error.help());
            assert!(all.contains(part), "{text}: {all}");
        };
        check("", "it is empty");
        check("Busybox", "must be lowercase: `busybox`");
        check("a:", "invalid tag ``");
        check("a:-x", "invalid tag `-x`");
        check("a//b", "invalid repository");
        check("a..b", "invalid repository");
        check("../../etc/passwd", "invalid repository");
        check("a___b", "invalid repository");
        check("a@sha256:12", "64 digits");
        check("bücher", "invalid repository");
        check("a b", "invalid repository");
    }

    #[test]
    fn a_finding_has_the_standard_words_and_a_place() {
        let check = |text: &str, more: &str, at: &str| {
            let error = text.parse::<Reference>().unwrap_err();
            let begin = format!("`{text}` is not an image reference: invalid reference format");
            assert_eq!(error.finding(), begin + more);
            assert_eq!(&text[error.span], at, "{text}");
        };
        check("python:3.12~slim", "", "~");
        check("a//b:1", "", "");
        check("python:", "", "");
        check("-x:1", "", "-x");
        check("python@sha256:abc", "", "sha256:abc");
        check("ghcr.io/org/app:1.2:3", "", ":");
        check("ghcr.io/Org/myAPP:1", ": repository name must be lowercase", "O");
        check("org/myAPP", ": repository name must be lowercase", "APP");
        check("", ": repository name must have at least one component", "");
        check("https://example.com/a", "", ":");
        check("host:port/a", "", ":");
        check("a b", "", " ");
        check("bücher", "", "ü");
        let long = format!("a/{}", "b".repeat(255));
        check(&long, ": repository name must not be more than 255 characters", &long);
        let tag = "t".repeat(129);
        check(&format!("a:{tag}"), "", &tag);
    }
}
