//! Completion: names first, which no schema knows, then what the schema knows.

mod cursor;
mod expression;
mod keys;
mod snippet;
mod template;
mod values;

use jobc_compiler::document::Document;
use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionItemTextEdit, InsertTextFormat, InsertTextMode,
    MarkupContent, MarkupKind, Position, TextEdit, Uri,
};

use crate::client::Client;
use crate::documents::Kind;
use crate::session::Session;
use crate::text::Text;

use cursor::Cursor;

/// One thing to insert.
#[derive(Clone, Debug, PartialEq)]
struct Item {
    label: String,
    kind: CompletionItemKind,
    /// What is inserted, in the syntax of snippets.
    insert: String,
    /// A few words behind the label.
    detail: String,
    /// Markdown.
    documentation: String,
    /// Names before words before keys before blocks.
    rank: u8,
}

impl Item {
    fn new(kind: CompletionItemKind, label: &str) -> Self {
        let insert = snippet::escaped(label);
        Self {
            label: label.to_owned(),
            kind,
            insert,
            detail: String::new(),
            documentation: String::new(),
            rank: 0,
        }
    }

    fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    fn documentation(mut self, text: impl Into<String>) -> Self {
        self.documentation = text.into();
        self
    }

    fn insert(mut self, snippet: impl Into<String>) -> Self {
        self.insert = snippet.into();
        self
    }

    fn rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }
}

/// What a place is completed from.
struct Context<'a> {
    session: &'a Session<'a>,
    uri: &'a Uri,
    kind: Kind,
    cursor: &'a Cursor,
    /// The tree that names are taken from: the last that parsed, else the one with the mark.
    names: &'a Document,
}

/// What may be inserted at a position.
pub(crate) fn complete(session: &Session<'_>, uri: &Uri, position: Position) -> Vec<CompletionItem> {
    let Some(open) = session.documents.get(uri).filter(|open| open.kind != Kind::Other) else {
        return vec![];
    };
    let offset = open.text.offset(position);
    let cursors = cursor::find(open.path.as_deref(), &open.text, offset);
    let last = session.good(uri).map(|good| &good.document);
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
        // A JSON language server gives these from the schema, and in JSON's own quotes.
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
