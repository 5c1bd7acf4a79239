//! Text in, files out: the compiler of jobc.

pub mod backend;
pub mod backends;
pub mod diagnostic;
pub mod document;
pub mod emit;
pub mod files;
pub mod parse;
pub mod source;
pub mod suggest;
pub mod validate;
