//! `jobc.lock`: the digest of each image name at the time of `jobc lock`.
//!
//! Nothing is looked up here: if the file is next to the job file, names become `NAME@sha256:…` as the plan is made, at
//! the places where a job names an image; and where it must hold every image, a name that it lacks is an error at its
//! place.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use jobc_schema::{Digest, Reference};

use crate::diagnostic::{Diagnostic, Place, Sink, codes};
use crate::document::{Document, Node};
use crate::files::Files;
use crate::parse;
use crate::source::{Source, SourceId, Sources, Span};

/// The file's name; it is next to the job file.
pub const FILE_NAME: &str = "jobc.lock";

/// What is made of `jobc.lock`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locking {
    /// Images are taken by their names alone.
    Ignored,
    /// Images that are in the file are taken by their digests.
    #[default]
    Followed,
    /// The same, and an image that is not in the file is an error.
    Required,
}

/// The digests by name, and the requested names.
#[derive(Debug, Default)]
pub struct Lock {
    digests: BTreeMap<String, String>,
    is_there: bool,
    required: bool,
    requested: RefCell<BTreeSet<String>>,
}

impl Lock {
    /// Reads the file next to a job file. Where it is absent no name has a digest.
    ///
    /// What is wrong with the file is reported in it; nothing is returned then.
    pub fn read(
        locking: Locking,
        job: SourceId,
        files: &dyn Files,
        sources: &mut Sources,
        sink: &mut Sink,
    ) -> Option<Self> {
        let mut lock = Self { required: locking == Locking::Required, ..Self::default() };
        if locking == Locking::Ignored || !files.exists(Utf8Path::new(FILE_NAME)) {
            return Some(lock);
        }
        let text = files.read(Utf8Path::new(FILE_NAME)).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let directory = sources.get(job).path().parent().unwrap_or(Utf8Path::new(""));
        let path = directory.join(FILE_NAME);
        let id = sources.add(Source::new(path, text.clone().unwrap_or_default()));
        if text.is_none() {
            sink.push(wrong("it cannot be read as text", Span::new(id, 0, 0)));
            return None;
        }
        let document = parse::parse(sources, id, sink)?;
        lock.digests = digests(&document, sink)?;
        lock.is_there = true;
        Some(lock)
    }

    /// The digest of an image, which is then added to its name; `None` if it is not known, the name has one already, or
    /// is not a reference.
    ///
    /// `place` is where the job, or a Dockerfile of its, names the image.
    pub(crate) fn digest(&self, name: &str, place: Place, sink: &mut Sink) -> Option<&str> {
        let has_tag = name.parse::<Reference>().is_ok_and(|reference| reference.digest.is_none());
        if !has_tag || matches!(name, "host" | "scratch") {
            return None;
        }
        self.requested.borrow_mut().insert(name.to_owned());
        let found = self.digests.get(name).map(String::as_str);
        if found.is_none() && self.required {
            sink.push(self.missing(name, place));
        }
        found
    }

    /// Reports an image whose name only its builder knows, where every image must be locked.
    pub(crate) fn refuse_hidden(&self, place: Place, sink: &mut Sink) {
        if self.required {
            let message = "the image depends on the platform of the build, so it cannot be locked";
            sink.push(
                Diagnostic::error(codes::IMAGE_NOT_LOCKED, message)
                    .at_place(place, "")
                    .note("name an image for several platforms, without a variable"),
            );
        }
    }

    /// The requested names, in order.
    pub fn into_requested(self) -> BTreeSet<String> {
        self.requested.into_inner()
    }

    /// The digests by name.
    pub fn into_digests(self) -> BTreeMap<String, String> {
        self.digests
    }

    fn missing(&self, name: &str, place: Place) -> Diagnostic {
        let message = if self.is_there {
            format!("the image `{name}` is not in {FILE_NAME}")
        } else {
            format!("the image `{name}` is not locked: there is no {FILE_NAME} next to the job file")
        };
        Diagnostic::error(codes::IMAGE_NOT_LOCKED, message)
            .at_place(place, "")
            .note("`jobc lock` records its current digest")
    }
}

/// Reads a file's content: `{version: 1, images: {NAME: DIGEST}}`.
fn digests(document: &Document, sink: &mut Sink) -> Option<BTreeMap<String, String>> {
    let before = sink.error_count();
    let mut found = BTreeMap::new();
    let root = &document.root;
    let version = root.get("version");
    if version.and_then(Node::to_scalar).is_none_or(|version| version.text != "1") {
        let span = version.map_or(root.span, |version| version.span);
        sink.push(wrong("missing `version: 1`", span));
    }
    for entry in root.entries() {
        match entry.key.as_str() {
            "version" => {}
            "images" => {
                for image in entry.value.entries() {
                    match image.value.as_str().filter(|digest| digest.parse::<Digest>().is_ok()) {
                        Some(digest) => drop(found.insert(image.key.clone(), digest.to_owned())),
                        None => sink.push(wrong(
                            &format!("the value of `{}` is not a digest", image.key),
                            image.value.span,
                        )),
                    }
                }
            }
            other => sink.push(wrong(&format!("unknown key `{other}`"), entry.key_span)),
        }
    }
    (sink.error_count() == before).then_some(found)
}

fn wrong(why: &str, span: Span) -> Diagnostic {
    Diagnostic::error(codes::LOCK_FORM, format!("invalid {FILE_NAME}: {why}"))
        .at_span(span, "")
        .note("`jobc lock` writes the file; remove it to write a new one")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::MemoryFiles;

    /// The value of a name in a lock file, and the findings.
    fn check(text: Option<&str>, locking: Locking, name: &str) -> String {
        let mut sources = Sources::new();
        let job = sources.add(Source::new("jobs/job.yaml", "image: x\n"));
        let files =
            text.map_or_else(MemoryFiles::default, |text| MemoryFiles::default().with(FILE_NAME, text));
        let mut sink = Sink::new();
        let lock = Lock::read(locking, job, &files, &mut sources, &mut sink);
        let place = Place::Span(Span::new(job, 7, 8));
        let found = lock.as_ref().and_then(|lock| lock.digest(name, place, &mut sink)).map(str::to_owned);
        let messages = sink
            .finish()
            .into_iter()
            .map(|diagnostic| format!(" {}: {}", diagnostic.code, diagnostic.message));
        found.unwrap_or_else(|| "nothing".to_owned()) + &messages.collect::<String>()
    }

    #[test]
    fn a_name_stands_for_its_digest() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let text = format!("version: 1\nimages:\n  \"a:1\": {digest}\n");
        assert_eq!(check(Some(&text), Locking::Followed, "a:1"), digest);
        assert_eq!(check(Some(&text), Locking::Required, "a:1"), digest);
        assert_eq!(check(Some(&text), Locking::Ignored, "a:1"), "nothing");
        assert_eq!(check(Some(&text), Locking::Followed, "a:2"), "nothing");
        assert_eq!(
            check(Some(&text), Locking::Required, "a:2"),
            "nothing J0291: the image `a:2` is not in jobc.lock"
        );
        for fixed in ["a@sha256:0", "host", "scratch", ""] {
            assert_eq!(check(Some(&text), Locking::Required, fixed), "nothing", "{fixed}");
        }
        assert_eq!(
            check(None, Locking::Required, "a"),
            "nothing J0291: the image `a` is not locked: there is no jobc.lock next to the job file"
        );
        assert_eq!(check(None, Locking::Followed, "a"), "nothing");
    }

    #[test]
    fn a_file_of_another_form_is_refused() {
        let messages = |text: &str| check(Some(text), Locking::Followed, "a");
        assert!(messages("version: 2\n").contains("J0502: invalid jobc.lock: missing `version: 1`"));
        assert!(messages("[]").contains("J0502"));
        assert!(messages("version: 1\nimages: {a: latest}\n").contains("the value of `a` is not a digest"));
        assert!(messages("version: 1\nimages: {a: 7}\n").contains("the value of `a` is not a digest"));
        assert!(messages("version: 1\nimage: {}\n").contains("unknown key `image`"));
    }
}
