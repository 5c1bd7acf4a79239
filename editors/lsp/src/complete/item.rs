//! A completion item.

use lsp_types::CompletionItemKind;

use super::snippet;

/// A completion item.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    pub(super) label: String,
    pub(super) kind: CompletionItemKind,
    /// The inserted text, in snippet syntax.
    pub(super) insert: String,
    /// A few words after the label.
    pub(super) detail: String,
    /// Markdown.
    pub(super) documentation: String,
    /// The text that is compared with the typed text, if it is not the label.
    pub(super) filter: Option<String>,
    /// The order: names, words, keys, blocks.
    pub(super) rank: u8,
    /// The order within a rank, before alphabetical order.
    pub(super) order: u16,
}

impl Item {
    pub(super) fn new(kind: CompletionItemKind, label: &str) -> Self {
        let insert = snippet::escaped(label);
        Self {
            label: label.to_owned(),
            kind,
            insert,
            detail: String::new(),
            documentation: String::new(),
            filter: None,
            rank: 0,
            order: 0,
        }
    }

    pub(super) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    pub(super) fn documentation(mut self, text: impl Into<String>) -> Self {
        self.documentation = text.into();
        self
    }

    pub(super) fn insert(mut self, snippet: impl Into<String>) -> Self {
        self.insert = snippet.into();
        self
    }

    pub(super) fn order(mut self, order: u16) -> Self {
        self.order = order;
        self
    }

    pub(super) fn rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }
}
