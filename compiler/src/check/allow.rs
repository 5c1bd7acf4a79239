//! `x-jobc-allow`: the codes a user has looked at and wants to keep.

use jobc_schema::Pointer;

use crate::diagnostic::{Code, Diagnostic, Severity, Sink, codes};
use crate::document::{Document, Value};
use crate::suggest;

/// The key at the top of a job file.
const KEY: &str = "x-jobc-allow";

/// The codes that `x-jobc-allow` lists; what is no code there is reported.
pub fn allowed(document: &Document, sink: &mut Sink) -> Vec<Code> {
    let Some(node) = document.root.get(KEY) else { return vec![] };
    let at = Pointer::ROOT.key(KEY);
    let Value::Sequence(items) = &node.value else {
        let message = format!("`{KEY}` is {}: write a list of codes, such as `[J0311]`", node.describe());
        sink.push(Diagnostic::warning(codes::ALLOW, message).at(&at, ""));
        return vec![];
    };
    let mut found = Vec::new();
    for (index, item) in items.iter().enumerate() {
        if let Some(code) = item.as_str().and_then(Code::parse) {
            found.push(code);
            continue;
        }
        let message = format!("`{KEY}` holds {}, which is no code of jobc", item.describe());
        let mut diagnostic = Diagnostic::warning(codes::ALLOW, message).at(&at.index(index), "");
        let near = item.as_str().and_then(|text| {
            let text = text.to_ascii_uppercase();
            suggest::nearest(&text, Code::all().map(|(code, _)| code.as_str())).map(str::to_owned)
        });
        diagnostic = match near {
            Some(near) => diagnostic.note(format!("the nearest code is `{near}`")),
            None => diagnostic.note("a code is `J` and four digits, as a finding prints it"),
        };
        sink.push(diagnostic);
    }
    found
}

/// Takes out the warnings and notes with these codes; errors stay.
pub fn silence(diagnostics: &mut Vec<Diagnostic>, allowed: &[Code]) {
    diagnostics.retain(|d| d.severity == Severity::Error || !allowed.contains(&d.code));
}
