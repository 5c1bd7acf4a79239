//! What all services of a file share.

use crate::document::Node;
use crate::files::Files;

use super::names::Names;
use super::text::Variables;

/// What all services share.
pub(super) struct Project<'a> {
    /// The file.
    pub(super) root: &'a Node,
    /// The files beside it.
    pub(super) files: &'a dyn Files,
    /// The variables of `.env`.
    pub(super) variables: Variables,
    /// The names of the services.
    pub(super) names: Names,
    /// Services that others wait for until they are healthy.
    pub(super) awaited: Vec<String>,
    /// Whether there is one service alone.
    pub(super) is_single: bool,
}
