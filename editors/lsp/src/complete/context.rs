//! The data that a completion uses.

use jobc_compiler::document::Document;
use lsp_types::Uri;

use crate::kind::Kind;
use crate::session::Session;

use super::cursor::Cursor;

/// The data that a completion uses.
pub(super) struct Context<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) uri: &'a Uri,
    pub(super) kind: Kind,
    pub(super) cursor: &'a Cursor,
    /// The tree that provides names: that of the text, else the one with the mark.
    pub(super) names: &'a Document,
    /// Whether the text is JSON.
    pub(super) json: bool,
}
