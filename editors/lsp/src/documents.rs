//! The open texts of the editor, and which of them are jobs.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use lsp_types::{TextDocumentContentChangeEvent, Uri};

use crate::kind::Kind;
use crate::recognize::kind;
use crate::text::{Encoding, Text};
use crate::uri;

/// One text.
#[derive(Clone, Debug)]
pub(crate) struct OpenDocument {
    /// Its path; `None` if it has no file.
    pub(crate) path: Option<Utf8PathBuf>,
    /// The client's version number.
    pub(crate) version: i32,
    pub(crate) text: Text,
    pub(crate) kind: Kind,
    /// The client's language identifier of the text.
    language: String,
}

/// The texts by URI.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    open: BTreeMap<String, OpenDocument>,
    by_path: BTreeMap<Utf8PathBuf, String>,
}

impl Documents {
    pub(crate) fn open(&mut self, uri: &Uri, language: &str, version: i32, text: String, encoding: Encoding) {
        let path = uri::path(uri);
        let kind = kind(language, path.as_deref(), &text);
        if let Some(path) = &path {
            self.by_path.insert(path.clone(), uri.0.clone());
        }
        let (text, language) = (Text::new(text, encoding), language.to_owned());
        self.open.insert(uri.0.clone(), OpenDocument { path, version, text, kind, language });
    }

    /// Applies changes in order; returns whether the text is open.
    pub(crate) fn change(
        &mut self,
        uri: &Uri,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
    ) -> bool {
        use TextDocumentContentChangeEvent::{
            TextDocumentContentChangePartial, TextDocumentContentChangeWholeDocument,
        };
        let Some(open) = self.open.get_mut(&uri.0) else { return false };
        for change in changes {
            match change {
                TextDocumentContentChangePartial(part) => open.text.change(Some(part.range), &part.text),
                TextDocumentContentChangeWholeDocument(whole) => open.text.change(None, &whole.text),
            }
        }
        open.version = version;
        open.kind = kind(&open.language, open.path.as_deref(), open.text.as_str());
        true
    }

    /// Removes a text and returns it, if it was open.
    pub(crate) fn close(&mut self, uri: &Uri) -> Option<OpenDocument> {
        let open = self.open.remove(&uri.0)?;
        if let Some(path) = open.path.as_ref().filter(|path| self.by_path.get(*path) == Some(&uri.0)) {
            self.by_path.remove(path);
        }
        Some(open)
    }

    pub(crate) fn get(&self, uri: &Uri) -> Option<&OpenDocument> {
        self.open.get(&uri.0)
    }

    /// The open text of a file.
    pub(crate) fn at(&self, path: &Utf8Path) -> Option<(Uri, &OpenDocument)> {
        let uri = self.by_path.get(path)?;
        Some((Uri(uri.clone()), self.open.get(uri)?))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Uri, &OpenDocument)> {
        self.open.iter().map(|(uri, open)| (Uri(uri.clone()), open))
    }
}
