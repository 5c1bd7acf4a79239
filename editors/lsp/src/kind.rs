//! What a text is to jobc.

/// The kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A job file.
    Job,
    /// A targets file.
    Targets,
    /// Another file, which a job may read.
    Other,
}
