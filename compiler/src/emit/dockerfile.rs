//! Dockerfiles as data, and their text.

/// A Dockerfile: its instructions in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dockerfile {}
