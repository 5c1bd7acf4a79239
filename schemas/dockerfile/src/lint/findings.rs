//! What the rules find, in the order in which they find it.

use super::super::line::Line;
use super::super::refusal::{Refusal, Rule, Span};
use super::super::rules::Lint;

/// What the rules find.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<Refusal>);

impl Findings {
    pub(super) fn add(
        &mut self,
        lint: Lint,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.0.push(Refusal::new(span, message).help(help).rule(Rule::Lint(lint)));
    }

    /// The same, with the text that is to be written in place of the span.
    pub(super) fn fix(
        &mut self,
        lint: Lint,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
        text: impl Into<String>,
    ) {
        self.0.push(Refusal::new(span, message).help(help).rule(Rule::Lint(lint)).near(Some(text)));
    }
}

/// The keyword of a line, in upper case.
pub(super) fn keyword(line: &Line) -> String {
    line.part().split_first().0.text().to_ascii_uppercase()
}
