//! Text in, files out: the compiler of jobc.

pub mod backend;
pub mod backends;
pub mod check;
pub mod compile;
pub mod diagnostic;
pub mod dockerfile;
pub mod document;
pub mod emit;
pub mod expand;
pub mod expression;
pub mod files;
pub mod import;
pub mod lower;
pub mod parse;
pub mod resolve;
pub mod source;
pub mod source_map;
pub mod stdlib;
pub mod suggest;
pub mod template;
pub mod validate;
