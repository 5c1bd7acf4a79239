//! Completion: first names, which the schema does not contain, then the contents of the schema.

mod context;
mod cursor;
mod expression;
mod item;
mod json;
mod keys;
mod snippet;
mod template;
mod values;

use camino::Utf8Path;
use lsp_types::{
    CompletionItem, CompletionItemTextEdit, InsertTextFormat, InsertTextMode, MarkupContent, MarkupKind,
    Position, TextEdit, Uri,
};

use crate::client::Client;
use crate::documents::Kind;
use crate::session::Session;
use crate::text::Text;

use context::Context;
use item::Item;

/// What may be inserted at a position.
pub(crate) fn complete(session: &Session<'_>, uri: &Uri, position: Position) -> Vec<CompletionItem> {
    let Some(open) = session.documents.get(uri).filter(|open| open.kind != Kind::Other) else {
        return vec![];
    };
    let offset = open.text.offset(position);
    let cursors = cursor::find(open.path.as_deref(), &open.text, offset);
    let last = session.good(uri).map(|good| &good.document);
    let json = json::is_json(open.path.as_deref().and_then(Utf8Path::extension), open.text.as_str());
    let mut items: Vec<(Item, std::ops::Range<usize>)> = vec![];
    let mut in_expression = false;
    for cursor in &cursors {
        let context =
            Context { session, uri, kind: open.kind, cursor, names: last.unwrap_or(&cursor.document) };
        if let Some((found, from)) = expression::items(&context, open.text.as_str(), offset) {
            items.extend(found.into_iter().map(|item| (item, from..offset)));
            in_expression = true;
            break;
        }
        let mut found = values::items(&context);
        if session.client.settings.schema_features && !json {
            found.extend(keys::items(&context, &open.text));
        }
        for mut item in found {
            if json && !open.text.as_str()[..cursor.replace.start].ends_with('"') {
                item.insert = format!("\"{}\"", item.insert);
            }
            if !items.iter().any(|(known, _)| known.label == item.label) {
                items.push((item, cursor.replace.clone()));
            }
        }
    }
    let mut all: Vec<CompletionItem> = items
        .into_iter()
        .map(|(item, replace)| finished(item, replace, &open.text, &session.client))
        .collect();
    if json && !in_expression && session.client.settings.schema_features {
        for json::Placed { item, replace, comma } in json::items(open.kind, open.text.as_str(), offset) {
            if !all.iter().any(|known| known.label == item.label) {
                let mut item = finished(item, replace, &open.text, &session.client);
                let edit = |at| TextEdit { range: open.text.range(at..at), new_text: ",".to_owned() };
                item.additional_text_edits = comma.map(|at| vec![edit(at)]);
                all.push(item);
            }
        }
    }
    all
}

fn finished(item: Item, replace: std::ops::Range<usize>, text: &Text, client: &Client) -> CompletionItem {
    let new_text = if client.snippets { item.insert } else { snippet::plain(&item.insert) };
    let is_snippet = client.snippets && new_text.contains('$');
    let multiline = new_text.contains('\n') && client.adjusts_indentation;
    let markdown = MarkupContent { kind: MarkupKind::Markdown, value: item.documentation };
    CompletionItem {
        sort_text: Some(format!("{}{}", item.rank, item.label)),
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
mod tests;
