//! Loads the text of a template: built in, from a file, or from a file of a locked Git repository.

use camino::Utf8Path;

use super::built_in::{built_in, text};
use super::location::TemplateLocation;
use super::tree::{self, Tree};
use crate::diagnostic::{self, Diagnostic, Sink, codes, unquoted};
use crate::files::Files;
use crate::lock::Lock;
use crate::source::Span;
use crate::suggest;

/// A template's text.
pub(super) struct Text {
    /// The text.
    pub(super) text: String,
    /// All files of a Git template.
    pub(super) tree: Option<Tree>,
}

/// Reads the template that `uses` at `span` names, and reports errors there.
pub(super) fn load(
    place: &TemplateLocation,
    span: Span,
    files: &dyn Files,
    lock: &Lock,
    sink: &mut Sink,
) -> Option<Text> {
    match of_place(place, span, files, lock, sink) {
        Ok(found) => found,
        Err(diagnostic) => {
            sink.push(diagnostic.at_span(span, ""));
            None
        }
    }
}

fn of_place(
    place: &TemplateLocation,
    span: Span,
    files: &dyn Files,
    lock: &Lock,
    sink: &mut Sink,
) -> Result<Option<Text>, Diagnostic> {
    match place {
        TemplateLocation::BuiltIn(name) => match text(name) {
            Some(text) => Ok(Some(Text { text: text.to_owned(), tree: None })),
            None => Err(unknown_built_in(name, span)),
        },
        TemplateLocation::File(path) => of_file(path, files).map(Some),
        TemplateLocation::Git { uses, reference, file } => {
            let Some(locked) = lock.template(uses, span, sink) else { return Ok(None) };
            if reference.commit().is_some_and(|commit| !commit.eq_ignore_ascii_case(&locked.commit)) {
                let message = format!("`jobc.lock` has commit {} for `{uses}`", locked.commit);
                return Err(Diagnostic::error(codes::TEMPLATE_NOT_LOCKED, message)
                    .note("remove the entry from `jobc.lock` and run `jobc lock`"));
            }
            let tree = of_cache(uses, &locked.digest, files)?;
            let Some(bytes) = tree.get(file) else {
                let message = format!("the template `{uses}` has no file `{file}`");
                let diagnostic = Diagnostic::error(codes::TEMPLATE_ABSENT, message);
                return Err(if reference.is_file() {
                    diagnostic.note("`uses` names one file; name its directory to have more")
                } else {
                    diagnostic.note(format!("its files: {}", suggest::list(tree.keys().map(String::as_str))))
                });
            };
            let text = std::str::from_utf8(bytes).map_err(|_| not_text(&place.to_string()))?.to_owned();
            Ok(Some(Text { text, tree: Some(tree) }))
        }
    }
}

/// The files of a Git template.
fn of_cache(uses: &str, digest: &str, files: &dyn Files) -> Result<Tree, Diagnostic> {
    let packed = files.template(digest).map_err(|_| {
        let message = format!("the files of the template `{uses}` are not in the cache of this host");
        Diagnostic::error(codes::TEMPLATE_NOT_LOCKED, message).note("`jobc lock` fetches them")
    })?;
    let tree = if tree::digest(&packed) == digest { tree::unpack(&packed) } else { None };
    tree.ok_or_else(|| {
        let message =
            format!("the cached files of the template `{uses}` do not have the digest of `jobc.lock`");
        Diagnostic::error(codes::TEMPLATE_NOT_LOCKED, message).note("`jobc lock` fetches them again")
    })
}

fn of_file(path: &str, files: &dyn Files) -> Result<Text, Diagnostic> {
    match files.read(Utf8Path::new(path)) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes).map_err(|_| not_text(path))?;
            Ok(Text { text, tree: None })
        }
        Err(error) => {
            let message = format!("the template `{path}` cannot be read: {error}");
            let diagnostic = Diagnostic::error(codes::TEMPLATE_ABSENT, message);
            Err(if path.contains('/') || path.contains('.') {
                diagnostic.note("a path is relative to the file that contains `uses`; a directory needs a `template.yaml`")
            } else {
                diagnostic.note(format!(
                    "a built-in template is written `std/{path}`, a file as a path such as `./{path}.yaml`; a directory needs a `template.yaml`"
                ))
            })
        }
    }
}

fn not_text(path: &str) -> Diagnostic {
    Diagnostic::error(codes::TEMPLATE_FORM, format!("`{path}` is not text in UTF-8"))
}

fn unknown_built_in(name: &str, span: Span) -> Diagnostic {
    let names = || built_in().map(|(name, _)| name);
    let key = format!("std/{name}");
    let message = format!("unknown built-in template `{key}`");
    let mut diagnostic = Diagnostic::error(codes::TEMPLATE_ABSENT, message);
    if let Some(near) = suggest::nearest(name, names()).map(|near| format!("std/{near}")) {
        diagnostic = diagnostic
            .note(format!("did you mean `{near}`?"))
            .write(diagnostic::Location::Span(unquoted(span, &key)), &near);
    }
    diagnostic.note(format!("known: {}", suggest::list(names())))
}
