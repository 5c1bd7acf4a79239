//! What a place is completed from.

use jobc_compiler::document::Document;
use lsp_types::Uri;

use crate::documents::Kind;
use crate::session::Session;

use super::cursor::Cursor;

/// What a place is completed from.
pub(super) struct Context<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) uri: &'a Uri,
    pub(super) kind: Kind,
    pub(super) cursor: &'a Cursor,
    /// The tree that names are taken from: the last that parsed, else the one with the mark.
    pub(super) names: &'a Document,
}
