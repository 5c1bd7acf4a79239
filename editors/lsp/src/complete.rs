//! Completion: first names, which the schema does not contain, then the contents of the schema.

mod context;
mod cursor;
mod expression;
mod item;
mod keys;
mod snippet;
mod template;
mod values;

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
    let last = session.tree(uri).map(|tree| &tree.document);
    let json = is_json(&open.text);
    let mut items: Vec<(Item, std::ops::Range<usize>)> = vec![];
    for cursor in &cursors {
        let context =
            Context { session, uri, kind: open.kind, cursor, names: last.unwrap_or(&cursor.document) };
        if let Some((found, from)) = expression::items(&context, open.text.as_str(), offset) {
            items.extend(found.into_iter().map(|item| (item, from..offset)));
            break;
        }
        let mut found = values::items(&context);
        // A JSON language server provides these from the schema, with JSON quotes.
        if session.client.settings.schema_features && !json {
            found.extend(keys::items(&context, &open.text));
        }
        for item in found {
            if !items.iter().any(|(known, _)| known.label == item.label) {
                items.push((item, cursor.replace.clone()));
            }
        }
    }
    items.into_iter().map(|(item, replace)| finished(item, replace, &open.text, &session.client)).collect()
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

fn is_json(text: &Text) -> bool {
    text.as_str().trim_start().starts_with('{')
}

#[cfg(test)]
mod tests;
