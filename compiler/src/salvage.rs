//! What can still be checked in a document that the schema rejects.
//!
//! Names that are not there (a parameter, a needed role, an image) can be reported although a quantity elsewhere is
//! malformed, so that one run shows all mistakes. The refused values are removed; the rest goes through the next
//! passes, and only their findings about names are kept: others might be caused by the removal.

use jobc_schema::Pointer;

use crate::diagnostic::{Code, Diagnostic, DocumentId, Location, Severity, codes};
use crate::document::{Document, Node, Part, Value};

/// Findings about names, which are true whatever was taken out: names that are not there, and names that cannot be any.
const NAMES: &[Code] = &[
    codes::PARAM_UNKNOWN,
    codes::PARAM_MISSING,
    codes::EXPRESSION_SYNTAX,
    codes::EXPRESSION_NAME,
    codes::EXPRESSION_PLACE,
    codes::SECRET_PLACE,
    codes::IMAGE_UNKNOWN,
    codes::IMAGE_REFERENCE,
    codes::VOLUME_UNKNOWN,
    codes::SECRET_UNKNOWN,
    codes::PORT_UNKNOWN,
    codes::PORT_CLASH,
    codes::PORT_RANGE,
    codes::NEED_UNKNOWN,
    codes::NEED_CYCLE,
    codes::MEMBER_UNKNOWN,
];

/// Maps whose entries are declared by name: without an entry, what names it would be called unknown.
const DECLARATIONS: &[&str] = &["params", "secrets", "images", "data", "outputs", "roles", "ports", "matrix"];

/// Whether a finding of a later pass is true of the whole document too.
pub fn is_about_names(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity == Severity::Error && NAMES.contains(&diagnostic.code)
}

/// The document without the values that these errors point at; nothing where a declaration would go with them.
pub fn salvage(document: &Document, errors: &[Diagnostic]) -> Option<Document> {
    let mut left = document.clone();
    for error in errors.iter().filter(|d| d.severity == Severity::Error) {
        let Location::Path { document: DocumentId::Job, pointer, part } = &error.labels.first()?.place else {
            return None;
        };
        let parent = pointer.parent()?.last().unwrap_or_default();
        let own = pointer.last()?;
        // A port or role with an invalid name still counts as declared.
        if error.code == codes::BAD_NAME
            && *part == Part::Key
            && ["ports", "roles"].contains(&parent.as_str())
        {
            continue;
        }
        // So does a port with an invalid number.
        if parent == "ports" && *part == Part::Value {
            put(&mut left, pointer, Value::String("auto".to_owned()));
            continue;
        }
        if DECLARATIONS.contains(&parent.as_str()) || DECLARATIONS.contains(&own.as_str()) {
            return None;
        }
        remove(&mut left, pointer);
    }
    Some(left)
}

/// Puts another value in the place of one.
fn put(document: &mut Document, pointer: &Pointer, value: Value) {
    let mut node: &mut Node = &mut document.root;
    for segment in pointer.segments() {
        let Value::Mapping(entries) = &mut node.value else { return };
        let Some(entry) = entries.iter_mut().find(|entry| entry.key == segment) else { return };
        node = &mut entry.value;
    }
    node.value = value;
}

/// Takes a key with its value, or a list with its item, out of a document; a list would count differently without
/// one item.
fn remove(document: &mut Document, pointer: &Pointer) {
    let mut node: &mut Node = &mut document.root;
    let segments: Vec<String> = pointer.segments().collect();
    let depth = segments.len();
    for (at, segment) in segments.iter().enumerate() {
        let Value::Mapping(entries) = &mut node.value else { return };
        let in_list = |entry: &crate::document::Entry| matches!(entry.value.value, Value::Sequence(_));
        let Some(place) = entries.iter().position(|entry| entry.key == *segment) else { return };
        if at + 1 == depth || in_list(&entries[place]) {
            entries.remove(place);
            return;
        }
        node = &mut entries[place].value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Sink;
    use crate::source::{Source, Sources};
    use crate::{parse, validate};

    /// What is left of a job, as JSON, or `-`.
    fn check(text: &str) -> String {
        let mut sources = Sources::new();
        let id = sources.add(Source::new("job.yaml", text));
        let mut sink = Sink::new();
        let document = parse::parse(&sources, id, &mut sink).unwrap();
        assert!(!validate::validate(&document, &mut sink), "the schema refuses the case");
        salvage(&document, sink.diagnostics()).map_or("-".to_owned(), |left| left.to_json().to_string())
    }

    #[test]
    fn refused_values_are_taken_out() {
        assert_eq!(
            check(
                "version: 1\nname: a\nimage: b:1\nroles: {r: {run: x, shm: 1, resources: {cpu: 1, memory: 8}}}\n"
            ),
            r#"{"version":1,"name":"a","image":"b:1","roles":{"r":{"run":"x","resources":{"cpu":1}}}}"#
        );
    }

    #[test]
    fn a_port_without_a_number_is_still_declared() {
        let ports = |text: &str| {
            check(&format!(
                "version: 1\nname: a\nimage: b:1\nroles: {{r: {{resources: {{ports: {text}}}}}}}\n"
            ))
        };
        assert!(ports("{a: 0, b: 80}").contains(r#""ports":{"a":"auto","b":80}"#));
        assert!(ports("{A: 80, b: 80}").contains(r#""ports":{"A":80,"b":80}"#));
    }

    #[test]
    fn a_declaration_is_never_taken_out() {
        assert_eq!(check("version: 1\nname: a\nimage: b:1\nparams: {n: []}\nroles: {r: {run: x}}\n"), "-");
        assert_eq!(check("version: 1\nname: a\nimage: b:1\nroles: {r: 3}\n"), "-");
    }
}
