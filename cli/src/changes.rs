//! What differs between two sets of written files, by meaning, and how it is printed.

pub(crate) mod compare;
pub(crate) mod print;
pub(crate) mod target_files;
