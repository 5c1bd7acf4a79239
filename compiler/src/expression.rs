//! `${{ … }}`: expressions in text, the names that are allowed at each place, and their values.
//!
//! Two passes use this: `expand` for what depends on the file alone, `resolve` for what needs the whole job. The
//! engine is minijinja, restricted to expressions: statements, comments, `{{` and escaping do not exist here, so
//! shell text is left unchanged.

mod engine;
mod failure;
pub mod holes;
mod names;
mod place;
mod scopes;
mod sh;
mod split;

pub use engine::{Engine, Names, Outcome};
pub use failure::Failure;
pub use names::{Key, Path, Step, paths};
pub use place::CodeSpan;
pub use scopes::{Scope, keeps_type, scopes_at};
pub use split::{Expression, Part, UnclosedExpression, expressions, has_expression, split};

#[cfg(test)]
mod tests;
