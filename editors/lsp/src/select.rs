//! Selection ranges, highlights and the symbols of all open files.

use lsp_types::{Position, SymbolInformation, Uri};
use serde_json::{Value, json};

use crate::kind::Kind;
use crate::session::Session;
use crate::tree::Tree;
use crate::{goto, names, outline};

/// The ranges around a position, from the innermost outward: a value, its entry, its map.
pub(crate) fn selection(tree: &Tree, position: Position) -> Value {
    let offset = tree.text.offset(position);
    let mut ranges: Vec<(usize, usize)> = vec![(0, tree.text.as_str().len())];
    let mut add = |start: u32, end: u32| {
        let range = (start as usize, end as usize);
        if ranges.last() != Some(&range) {
            ranges.push(range);
        }
    };
    let touches = |start: u32, end: u32| start as usize <= offset && offset <= end as usize;
    let mut node = &tree.document.root;
    'down: loop {
        if touches(node.span.start, node.span.end) {
            add(node.span.start, node.span.end);
        }
        for entry in node.entries() {
            let end = entry.value.span.end.max(entry.key_span.end);
            if touches(entry.key_span.start, end) {
                add(entry.key_span.start, end);
                if touches(entry.key_span.start, entry.key_span.end) {
                    add(entry.key_span.start, entry.key_span.end);
                    break 'down;
                }
                node = &entry.value;
                continue 'down;
            }
        }
        match node.items().iter().find(|item| touches(item.span.start, item.span.end)) {
            Some(item) => node = item,
            None => break,
        }
    }
    // A range must contain the previous one.
    let mut kept: Vec<(usize, usize)> = vec![];
    for range in ranges {
        if kept.last().is_none_or(|outer| outer.0 <= range.0 && range.1 <= outer.1) {
            kept.push(range);
        }
    }
    kept.into_iter().fold(Value::Null, |parent, (start, end)| {
        let range = json!(tree.text.range(start..end));
        if parent.is_null() { json!({"range": range}) } else { json!({"range": range, "parent": parent}) }
    })
}

/// The places in this file of the name at a position: 3 for its declaration, 2 for its uses.
pub(crate) fn highlights(session: &Session<'_>, uri: &Uri, tree: &Tree, position: Position) -> Vec<Value> {
    let mentions = goto::mentions(session, uri, tree);
    let Some(at) = names::at(mentions, tree.text.offset(position)) else { return vec![] };
    let same = mentions.iter().filter(|mention| mention.name == at.name);
    same.map(|it| {
        let kind = if it.declares { 3 } else { 2 };
        json!({"range": tree.text.range(it.range.clone()), "kind": kind})
    })
    .collect()
}

/// The symbols of the open files whose names contain the letters of a query in order.
pub(crate) fn workspace_symbols(session: &Session<'_>, query: &str) -> Vec<SymbolInformation> {
    let wanted: Vec<char> = query.to_lowercase().chars().filter(|c| !c.is_whitespace()).collect();
    let fits = |name: &str| {
        let name = name.to_lowercase();
        let mut letters = name.chars();
        wanted.iter().all(|wanted| letters.any(|letter| letter == *wanted))
    };
    let mut found = vec![];
    for (uri, _) in session.documents.iter().filter(|(_, open)| open.kind != Kind::Other) {
        let Some(tree) = session.tree(&uri) else { continue };
        let all = outline::flat(outline::symbols(tree), &uri);
        // Sections are the same in every file; people search for names in them.
        let named = all.into_iter().filter(|it| it.base_symbol_information.container_name.is_some());
        found.extend(named.filter(|it| fits(&it.base_symbol_information.name)));
    }
    found
}
