//! Values that follow from the rest of a file: axes of a matrix in its exceptions, codes in `x-jobc-allow`.

use jobc_compiler::diagnostic::Code;
use jobc_compiler::document::Node;
use lsp_types::CompletionItemKind;

use super::context::Context;
use super::cursor::MARK;
use super::item::Item;
use super::keys::default_text;

/// The keys of a matrix that are not axes.
const RULES: [&str; 4] = ["axes", "include", "exclude", "max_parallel"];

/// The codes of lints, first those of the file's own findings.
pub(super) fn codes(context: &Context<'_>) -> Vec<Item> {
    let analysis = context.session.job(context.uri).and_then(|job| job.analysis.as_ref());
    let findings = analysis.map(|analysis| &*analysis.findings).unwrap_or_default();
    let is_own = |code: Code| findings.iter().any(|finding| finding.code == code);
    let item = |(code, title): (Code, &str)| {
        let rank = u8::from(!is_own(code));
        Item::new(CompletionItemKind::Constant, code.as_str()).detail(title).rank(rank)
    };
    Code::all()
        .filter(|(code, _)| code.as_str().starts_with("J03") && code.as_str() != "J0300")
        .map(item)
        .collect()
}

/// The axes of the matrix of the job or a role, in an exception of it.
pub(super) fn axes(context: &Context<'_>, matrix: &[&str]) -> Vec<Item> {
    let axes = declared(context, matrix).into_iter();
    axes.map(|(name, _)| Item::new(CompletionItemKind::Property, name)).collect()
}

/// The values of an axis.
pub(super) fn axis_values(context: &Context<'_>, matrix: &[&str], axis: &str) -> Vec<Item> {
    let found = declared(context, matrix).into_iter().find(|(name, _)| *name == axis);
    let values = found.map(|(_, values)| values.items()).unwrap_or_default().iter();
    let item = |node: &Node| {
        let insert = default_text(&node.to_json(), true);
        node.to_scalar().map(|scalar| Item::new(CompletionItemKind::Value, &scalar.text).insert(insert))
    };
    values.filter_map(item).collect()
}

fn declared<'a>(context: &Context<'a>, matrix: &[&str]) -> Vec<(&'a str, &'a Node)> {
    let node = matrix.iter().try_fold(&context.names.root, |node, step| node.get(step));
    let axes = node.and_then(|node| node.get("axes")).or(node);
    let entries = axes.map(Node::entries).unwrap_or_default().iter();
    let is_axis = |name: &str| !RULES.contains(&name) && !name.contains(MARK);
    entries.filter(|entry| is_axis(&entry.key)).map(|entry| (&*entry.key, &entry.value)).collect()
}
