//! The fields of job files and targets files: where each is written, and what the schemas say about it.
//!
//! `jobc explain`, completions and the pages of the documentation are made from this, so that all of them have the text
//! of the schemas, which editors show as well.

mod document;
mod format;
mod kind;
mod lookup;
mod page;

pub(crate) use document::document;
pub(crate) use format::{Field, Format};
pub(crate) use lookup::{find, keys, nearest};
pub(crate) use page::{below, page};

#[cfg(test)]
mod tests;
