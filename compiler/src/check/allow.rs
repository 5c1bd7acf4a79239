//! `x-jobc-allow`: the codes that a user has reviewed and wants to keep.

use jobc_schema::Pointer;

use crate::diagnostic::{Code, Diagnostic, Sink, codes};
use crate::document::{Document, Value};
use crate::suggest;

/// The key at the top of a job file.
const KEY: &str = "x-jobc-allow";

/// How the codes of lints begin; others may be silenced too, but these are meant.
const LINTS: &str = "J03";

/// The codes that `x-jobc-allow` lists.
pub fn allowed(document: &Document) -> Vec<Code> {
    let items = document.root.get(KEY).map(crate::document::Node::items).unwrap_or_default();
    items.iter().filter_map(|item| Code::parse(item.as_str()?)).collect()
}

/// Reports unknown codes in `x-jobc-allow`.
pub(super) fn check(document: &Document, sink: &mut Sink) {
    let Some(node) = document.root.get(KEY) else { return };
    let at = Pointer::ROOT.key(KEY);
    let Value::Sequence(items) = &node.value else {
        let message = format!("`{KEY}` is {}: write a list of codes, such as `[J0311]`", node.describe());
        sink.push(Diagnostic::warning(codes::ALLOW, message).at(&at, ""));
        return;
    };
    for (index, item) in items.iter().enumerate() {
        if item.as_str().and_then(Code::parse).is_some() {
            continue;
        }
        let message = format!("`{KEY}` contains {}, which is not a diagnostic code", item.describe());
        let near = item.as_str().map(str::to_ascii_uppercase).and_then(|text| {
            suggest::nearest(
                &text,
                Code::all().map(|(code, _)| code.as_str()).filter(|code| code.starts_with(LINTS)),
            )
        });
        let advice = match near {
            Some(near) => format!("the nearest code is `{near}`"),
            None => "a code is `J` and four digits, as a finding prints it".to_owned(),
        };
        sink.push(Diagnostic::warning(codes::ALLOW, message).at(&at.index(index), "").note(advice));
    }
}
