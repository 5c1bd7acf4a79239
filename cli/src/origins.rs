//! Where the parts of written files come from: source maps, and the lines that they name.

pub(crate) mod sentence;
pub(crate) mod source_map;
pub(crate) mod tasks;
