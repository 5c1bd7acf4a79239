//! The structure of a file: symbols, and folding ranges.

use jobc_compiler::document::{Document, Entry, Node, Value};
use lsp_types::{DocumentSymbol, FoldingRange, FoldingRangeKind, SymbolInformation, SymbolKind, Uri};

use crate::text::Text;
use crate::tree::Tree;

/// The symbols of a file: its sections, and everything below them with a user-defined name.
pub(crate) fn symbols(tree: &Tree) -> Vec<DocumentSymbol> {
    tree.document.root.entries().iter().map(|entry| section(entry, &tree.text)).collect()
}

/// The same without a hierarchy, for clients that do not support one.
pub(crate) fn flat(symbols: Vec<DocumentSymbol>, uri: &Uri) -> Vec<SymbolInformation> {
    let mut found = vec![];
    for symbol in symbols {
        let container = symbol.name.clone();
        let information = |symbol: &DocumentSymbol, container: Option<String>| SymbolInformation {
            location: lsp_types::Location { uri: uri.clone(), range: symbol.range },
            base_symbol_information: lsp_types::BaseSymbolInformation {
                name: symbol.name.clone(),
                kind: symbol.kind,
                tags: None,
                container_name: container,
            },
            #[expect(deprecated, reason = "the struct has no other constructor")]
            deprecated: None,
        };
        found.push(information(&symbol, None));
        found.extend(
            symbol.children.iter().flatten().map(|child| information(child, Some(container.clone()))),
        );
    }
    found
}

/// Sections whose keys are names.
const NAMED: [(&str, SymbolKind); 8] = [
    ("params", SymbolKind::Variable),
    ("secrets", SymbolKind::Key),
    ("images", SymbolKind::Package),
    ("data", SymbolKind::File),
    ("outputs", SymbolKind::File),
    ("roles", SymbolKind::Class),
    ("targets", SymbolKind::Module),
    ("env", SymbolKind::Constant),
];

fn section(entry: &Entry, text: &Text) -> DocumentSymbol {
    let named = NAMED.iter().find(|(key, _)| *key == entry.key);
    let children =
        named.map(|(_, kind)| entry.value.entries().iter().map(|child| symbol(child, *kind, text)).collect());
    let kind = match entry.value.value {
        Value::Mapping(_) => SymbolKind::Namespace,
        Value::Sequence(_) => SymbolKind::Array,
        _ => SymbolKind::Property,
    };
    let mut section = symbol(entry, kind, text);
    section.children = children.filter(|children: &Vec<DocumentSymbol>| !children.is_empty());
    section
}

fn symbol(entry: &Entry, kind: SymbolKind, text: &Text) -> DocumentSymbol {
    let detail =
        entry.value.to_scalar().map(|scalar| scalar.text.lines().next().unwrap_or_default().to_owned());
    let whole = entry.key_span.start as usize..(entry.value.span.end.max(entry.key_span.end)) as usize;
    let name = if entry.key.trim().is_empty() { "(empty)".to_owned() } else { entry.key.clone() };
    DocumentSymbol::new(
        name,
        detail,
        kind,
        None,
        None,
        text.range(whole),
        text.range(entry.key_span.range()),
        None,
    )
}

/// Folding ranges: maps, lists, multi-line texts, and blocks of comments.
pub(crate) fn folds(tree: &Tree) -> Vec<FoldingRange> {
    let mut found = vec![];
    let Document { root } = &tree.document;
    below(root, &tree.text, &mut found);
    comments(&tree.text, &mut found);
    found.sort_by_key(|fold| (fold.start_line, std::cmp::Reverse(fold.end_line)));
    found.dedup_by_key(|fold| fold.start_line);
    found
}

fn below(node: &Node, text: &Text, found: &mut Vec<FoldingRange>) {
    for entry in node.entries() {
        fold(entry.key_span.start as usize, entry.value.span.end as usize, text, None, found);
        below(&entry.value, text, found);
    }
    for item in node.items() {
        fold(item.span.start as usize, item.span.end as usize, text, None, found);
        below(item, text, found);
    }
}

fn fold(
    start: usize,
    end: usize,
    text: &Text,
    kind: Option<FoldingRangeKind>,
    found: &mut Vec<FoldingRange>,
) {
    let (start, end) = (text.position(start).line, text.position(end).line);
    if end > start {
        found.push(FoldingRange { start_line: start, end_line: end, kind, ..FoldingRange::default() });
    }
}

/// Sequences of lines with only comments.
fn comments(text: &Text, found: &mut Vec<FoldingRange>) {
    let mut first = None;
    for line in 0..=text.line_count() {
        let bytes = text.line(line);
        let is_comment =
            line < text.line_count() && text.as_str()[bytes.clone()].trim_start().starts_with('#');
        match (first, is_comment) {
            (None, true) => first = Some(bytes.start),
            (Some(start), false) => {
                let end = text.line(line.saturating_sub(1)).end;
                fold(start, end, text, Some(FoldingRangeKind::Comment), found);
                first = None;
            }
            _ => {}
        }
    }
}
