//! Compares two sets of built files by their values, and prints the differences.

pub(crate) mod compare;
pub(crate) mod print;
pub(crate) mod target_files;
