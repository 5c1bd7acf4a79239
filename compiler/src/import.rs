//! Pass 1b: other people's specs become documents of ours, with the spans of what their authors wrote.
//!
//! A file is recognised by its keys. What a later pass says about an imported job points at the lines of the
//! original; what is wrong with the original itself is said here, in its own words.

mod fields;
mod names;
mod openpai_short;

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Document, Entry};
use crate::source::Sources;

/// Turns a spec of another tool into ours; a spec of ours passes through unchanged.
///
/// Read so far: the short OpenPAI template `{jobName, image, dataDir, outputDir, taskRoles}`. OpenPAI protocol v2 and
/// the full form of v1 are refused by name. Returns nothing where the file has errors.
pub fn import(document: Document, _sources: &Sources, sink: &mut Sink) -> Option<Document> {
    match recognise(&document) {
        Form::Own => Some(document),
        Form::OpenpaiV1 => openpai_short::import(&document, sink),
        Form::OpenpaiV2(key) => {
            sink.push(
                Diagnostic::error(codes::OPENPAI_LATER, "jobs of OpenPAI protocol v2 are not read yet")
                    .at_span(key.key_span, "this key is of protocol v2")
                    .note("a later version reads them; this one reads jobc's own job files and the short OpenPAI template")
                    .note(openpai_short::TEMPLATE),
            );
            None
        }
    }
}

/// Whose spec a file is.
enum Form<'a> {
    /// Ours, or something that validation will speak about.
    Own,
    /// OpenPAI protocol v1, short or full.
    OpenpaiV1,
    /// OpenPAI protocol v2, with the key that shows it.
    OpenpaiV2(&'a Entry),
}

fn recognise(document: &Document) -> Form<'_> {
    let root = &document.root;
    let entry = |key: &str| root.entries().iter().find(|entry| entry.key == key);
    // A file that has what only ours have is ours, whatever a stray key looks like.
    if entry("roles").is_some() {
        return Form::Own;
    }
    if let Some(key) = entry("protocolVersion").or_else(|| entry("prerequisites")) {
        return Form::OpenpaiV2(key);
    }
    if entry("jobName").is_some() || entry("taskRoles").is_some_and(|roles| !roles.value.items().is_empty()) {
        return Form::OpenpaiV1;
    }
    Form::Own
}

#[cfg(test)]
mod tests;
