//! Completion: first names, which the schema does not contain, then the contents of the schema.

mod context;
mod cursor;
mod expression;
mod field;
mod fits;
mod item;
mod json;
mod keys;
mod known;
mod order;
mod snippet;
mod template;
mod values;
mod variables;

use lsp_types::{
    CompletionItem, CompletionItemTextEdit, InsertTextFormat, InsertTextMode, MarkupContent, MarkupKind,
    Position, TextEdit, Uri,
};

use crate::client::Client;
use crate::kind::Kind;
use crate::session::Session;
use crate::text::Text;
use crate::tree::is_json;

use context::Context;
use cursor::Beside;
use item::Item;
use json::Commas;

/// What may be inserted at a position.
pub(crate) fn complete(session: &Session<'_>, uri: &Uri, position: Position) -> Vec<CompletionItem> {
    let Some(open) = session.documents.get(uri).filter(|open| open.kind != Kind::Other) else {
        return vec![];
    };
    let offset = open.text.offset(position);
    let cursors = cursor::find(open.path.as_deref(), &open.text, offset);
    let last = session.tree(uri).map(|tree| &tree.document);
    let json = is_json(open.path.as_deref(), open.text.as_str());
    let mut items: Vec<(Item, std::ops::Range<usize>)> = vec![];
    let mut in_expression = false;
    for cursor in &cursors {
        let names = last.unwrap_or(&cursor.document);
        let context = Context { session, uri, kind: open.kind, cursor, names, json };
        if let Some((found, from)) = expression::items(&context, open.text.as_str(), offset) {
            items.extend(found.into_iter().map(|item| (item, from..offset)));
            in_expression = true;
            break;
        }
        if let Some((found, from)) = variables::items(&context, open.text.as_str(), offset) {
            items.extend(found.into_iter().map(|item| (item, from..offset)));
            in_expression = true;
            break;
        }
        if cursor.beside == Beside::Text {
            continue;
        }
        let mut found = values::items(&context);
        if session.client.settings.schema_features {
            found.extend(keys::items(&context, &open.text));
            fits::retain(&context, &mut found);
        }
        // On its own line, a field is more likely than a value for the whole block.
        let same = |other: &cursor::Cursor| other.is_key && other.path == cursor.path;
        let later = u8::from(!cursor.is_key && cursor.on_own_line() && cursors.iter().any(same)) * 5;
        for item in found {
            let rank = item.rank + later;
            let item = item.rank(rank);
            if !items.iter().any(|(known, _)| known.label == item.label) {
                let replace = cursor.replace.clone();
                items.push(if json {
                    json::quoted(item, cursor, replace, open.text.as_str())
                } else {
                    (item, replace)
                });
            }
        }
    }
    let commas =
        if json && !in_expression { json::commas(open.text.as_str(), offset) } else { Commas::default() };
    let comma = |at: usize| TextEdit { range: open.text.range(at..at), new_text: ",".to_owned() };
    let with_commas = |(mut item, replace): (Item, std::ops::Range<usize>)| {
        item.insert.push_str(commas.after);
        let item = finished(item, replace, &open.text, &session.client);
        CompletionItem { additional_text_edits: commas.before.map(|at| vec![comma(at)]), ..item }
    };
    items.into_iter().map(with_commas).collect()
}

fn finished(item: Item, replace: std::ops::Range<usize>, text: &Text, client: &Client) -> CompletionItem {
    let new_text = if client.snippets { item.insert } else { snippet::plain(&item.insert) };
    let is_snippet = client.snippets && new_text.contains('$');
    let multiline = new_text.contains('\n') && client.adjusts_indentation;
    let markdown = MarkupContent { kind: MarkupKind::Markdown, value: item.documentation };
    CompletionItem {
        sort_text: Some(format!("{}{:03}{}", item.rank, item.order, item.label)),
        filter_text: item.filter,
        label: item.label,
        kind: Some(item.kind),
        detail: Some(item.detail).filter(|detail| !detail.is_empty()),
        documentation: Some(markdown).filter(|markdown| !markdown.value.is_empty()).map(Into::into),
        insert_text_format: Some(if is_snippet {
            InsertTextFormat::Snippet
        } else {
            InsertTextFormat::PlainText
        }),
        insert_text_mode: multiline.then_some(InsertTextMode::AdjustIndentation),
        text_edit: Some(CompletionItemTextEdit::TextEdit(TextEdit { range: text.range(replace), new_text })),
        ..CompletionItem::default()
    }
}

#[cfg(test)]
mod acceptance;
#[cfg(test)]
mod tests;
