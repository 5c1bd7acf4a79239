//! Text in, files out: the compiler of jobc.
pub mod diagnostic;
pub mod document;
pub mod source;
