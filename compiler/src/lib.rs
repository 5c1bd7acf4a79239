//! Text in, files out: the compiler of jobc.
//!
//! [`compile::plan`] and [`compile::build`] string the passes together:
//!
//! 1. [`parse::parse`]: text to a [`document::Document`], a span for every key and value;
//!    [`template::expand_templates`] puts in what `uses` names, [`import::import`] reads other people's formats;
//! 2. [`validate::validate`]: the document against the schema, explained in words; [`validate::job`] makes it typed;
//! 3. [`expand::expand`]: parameters and matrix, one document a combination; [`adjust::adjust`]: fewer instances of it,
//!    where the command line says so; [`resolve::resolve`]: a typed job and a target to a plan in which everything is
//!    decided;
//! 4. [`check::check`]: lints over the plan;
//! 5. [`lower::lower`]: the plan to structured files, through the [`backends`];
//! 6. [`emit`]: structured files to bytes, with a [`source_map`].
//!
//! What a user did wrong is a [`diagnostic::Diagnostic`] in a [`diagnostic::Sink`], never an `Err`; a pass goes on as
//! far as it can. Nothing here reads a file, a clock or the environment: files come through [`files::Files`].
#![forbid(unsafe_code)]

pub mod adjust;
pub mod asks;
pub mod backend;
pub mod backends;
mod blank;
pub mod built_in_targets;
pub mod check;
pub mod compile;
pub mod diagnostic;
pub mod docker;
pub mod dockerfile;
pub mod document;
pub mod emit;
pub mod expand;
pub mod expression;
pub mod files;
pub mod format;
mod full_width;
pub mod import;
pub mod lock;
pub mod lower;
pub mod openpai;
pub mod parse;
pub mod plugin;
pub mod provenance;
pub mod resolve;
pub mod rewrite;
pub mod salvage;
pub mod source;
pub mod source_map;
pub mod stdlib;
pub use jobc_schema::suggest;
pub mod template;
pub mod validate;
pub mod why;

#[cfg(test)]
mod snapshot;
