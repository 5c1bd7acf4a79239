//! `jobc.lock`: what names of images and Git templates resolved to when `jobc lock` ran.
//!
//! Nothing is resolved here: if the file is next to the job file, names become `NAME@sha256:…` as the plan is made,
//! where a job names an image; and if every image must be locked, a missing name is an error at its
//! place. A Git template must always be in the file, since its files are found by its digest.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use jobc_schema::{Digest, Reference};

use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::document::{Document, Node};
use crate::files::Files;
use crate::parse;
use crate::source::{Source, SourceId, Sources, Span};

/// The name of the file, which is next to the job file.
pub const FILE_NAME: &str = "jobc.lock";

/// How `jobc.lock` is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locking {
    /// Images are pulled by name alone.
    Ignored,
    /// Images in the file are pulled by digest.
    #[default]
    Followed,
    /// As `Followed`, and an image that is not in the file is an error.
    Required,
}

/// The content of a lock file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locked {
    /// The digests of images by name.
    pub images: BTreeMap<String, String>,
    /// The Git templates, by the text of `uses`.
    pub templates: BTreeMap<String, LockedTemplate>,
}

/// What a Git template resolved to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedTemplate {
    /// The commit, in hexadecimal digits.
    pub commit: String,
    /// The digest of its packed files.
    pub digest: String,
}

/// The content of the file, and the requested names.
#[derive(Debug, Default)]
pub struct Lock {
    locked: Locked,
    is_there: bool,
    required: bool,
    requested: RefCell<BTreeSet<String>>,
    requested_templates: RefCell<BTreeMap<String, Span>>,
}

impl Lock {
    /// Reads the file next to a job file. If there is none, no name has a digest. Templates are resolved in any case.
    ///
    /// Errors in the file are reported, and `None` is returned.
    pub fn read(
        locking: Locking,
        job: SourceId,
        files: &dyn Files,
        sources: &mut Sources,
        sink: &mut Sink,
    ) -> Option<Self> {
        let mut lock = Self { required: locking == Locking::Required, ..Self::default() };
        if !files.exists(Utf8Path::new(FILE_NAME)) {
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
        lock.locked = content(&document, sink)?;
        lock.is_there = true;
        if locking == Locking::Ignored {
            lock.locked.images.clear();
        }
        Some(lock)
    }

    /// The digest of an image, to be appended to its name; `None` if it is unknown, the name already has one, or it
    /// is not a reference.
    ///
    /// `place` is where the job, or its Dockerfile, names the image.
    pub(crate) fn digest(&self, name: &str, place: Location, sink: &mut Sink) -> Option<&str> {
        let has_tag = name.parse::<Reference>().is_ok_and(|reference| reference.digest.is_none());
        if !has_tag || matches!(name, "host" | "scratch") {
            return None;
        }
        self.requested.borrow_mut().insert(name.to_owned());
        let found = self.locked.images.get(name).map(String::as_str);
        if found.is_none() && self.required {
            sink.push(self.missing(name, place));
        }
        found
    }

    /// Reports an image whose name only its builder knows, if every image must be locked.
    pub(crate) fn refuse_hidden(&self, place: Location, sink: &mut Sink) {
        if self.required {
            let message = "the image depends on the platform of the build, so it cannot be locked";
            sink.push(
                Diagnostic::error(codes::IMAGE_NOT_LOCKED, message)
                    .at_place(place, "")
                    .note("name an image for several platforms, without a variable"),
            );
        }
    }

    /// What a Git template resolved to; `span` is its `uses`. Reports one that is unknown.
    pub(crate) fn template(&self, uses: &str, span: Span, sink: &mut Sink) -> Option<&LockedTemplate> {
        self.requested_templates.borrow_mut().entry(uses.to_owned()).or_insert(span);
        let found = self.locked.templates.get(uses);
        if found.is_none() {
            let message = if self.is_there {
                format!("the template `{uses}` is not in {FILE_NAME}")
            } else {
                format!("the template `{uses}` is not locked: the job file has no {FILE_NAME} next to it")
            };
            sink.push(
                Diagnostic::error(codes::TEMPLATE_NOT_LOCKED, message)
                    .at_span(span, "")
                    .note("`jobc lock` fetches it, and records its commit and digest"),
            );
        }
        found
    }

    /// The requested names of images, in order.
    pub fn into_requested(self) -> BTreeSet<String> {
        self.requested.into_inner()
    }

    /// The requested Git templates, with the first place that requests each.
    pub fn into_requested_templates(self) -> BTreeMap<String, Span> {
        self.requested_templates.into_inner()
    }

    /// What the file holds.
    pub fn into_locked(self) -> Locked {
        self.locked
    }

    fn missing(&self, name: &str, place: Location) -> Diagnostic {
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

/// Reads a file's content: `{version: 1, images: {NAME: DIGEST}, templates: {USES: {commit, digest}}}`.
fn content(document: &Document, sink: &mut Sink) -> Option<Locked> {
    let before = sink.error_count();
    let mut found = Locked::default();
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
                        Some(digest) => drop(found.images.insert(image.key.clone(), digest.to_owned())),
                        None => sink.push(wrong(
                            &format!("the value of `{}` is not a digest", image.key),
                            image.value.span,
                        )),
                    }
                }
            }
            "templates" => {
                for template in entry.value.entries() {
                    match locked_template(&template.value) {
                        Some(locked) => drop(found.templates.insert(template.key.clone(), locked)),
                        None => sink.push(wrong(
                            &format!("`{}` needs a `commit` and a `digest`", template.key),
                            template.value.span,
                        )),
                    }
                }
            }
            other => sink.push(wrong(&format!("unknown key `{other}`"), entry.key_span)),
        }
    }
    (sink.error_count() == before).then_some(found)
}

fn locked_template(node: &Node) -> Option<LockedTemplate> {
    let text = |key: &str| node.get(key).and_then(Node::to_scalar).map(|scalar| scalar.text);
    let commit = text("commit").filter(|commit| jobc_dockerfile::is_commit(commit))?;
    let digest = text("digest").filter(|digest| digest.parse::<Digest>().is_ok())?;
    (node.entries().len() == 2).then_some(LockedTemplate { commit, digest })
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

    /// The digest of a name in a lock file, and the findings.
    fn check(text: Option<&str>, locking: Locking, name: &str) -> String {
        let mut sources = Sources::new();
        let job = sources.add(Source::new("jobs/job.yaml", "image: x\n"));
        let files =
            text.map_or_else(MemoryFiles::default, |text| MemoryFiles::default().with(FILE_NAME, text));
        let mut sink = Sink::new();
        let lock = Lock::read(locking, job, &files, &mut sources, &mut sink);
        let place = Location::Span(Span::new(job, 7, 8));
        let found = lock.as_ref().and_then(|lock| lock.digest(name, place, &mut sink)).map(str::to_owned);
        let messages = sink
            .finish()
            .into_iter()
            .map(|diagnostic| format!(" {}: {}", diagnostic.code, diagnostic.message));
        found.unwrap_or_else(|| "nothing".to_owned()) + &messages.collect::<String>()
    }

    #[test]
    fn a_name_is_replaced_with_its_digest() {
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
    fn a_file_in_another_format_is_rejected() {
        let messages = |text: &str| check(Some(text), Locking::Followed, "a");
        assert!(messages("version: 2\n").contains("J0502: invalid jobc.lock: missing `version: 1`"));
        assert!(messages("[]").contains("J0502"));
        assert!(messages("version: 1\nimages: {a: latest}\n").contains("the value of `a` is not a digest"));
        assert!(messages("version: 1\nimages: {a: 7}\n").contains("the value of `a` is not a digest"));
        assert!(messages("version: 1\nimage: {}\n").contains("unknown key `image`"));
        let (commit, digest) = ("a1".repeat(20), format!("sha256:{}", "0a".repeat(32)));
        let template = |more: &str| format!("version: 1\ntemplates:\n  \"git+https://h/r@v1\": {{{more}}}\n");
        assert_eq!(messages(&template(&format!("commit: {commit}, digest: {digest}"))), "nothing");
        for wrong in [
            String::new(),
            format!("commit: {commit}"),
            format!("commit: v1, digest: {digest}"),
            format!("commit: {commit}, digest: {digest}, x: 1"),
        ] {
            assert!(messages(&template(&wrong)).contains("needs a `commit` and a `digest`"), "{wrong}");
        }
    }
}
