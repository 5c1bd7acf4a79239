//! The findings of the rules, in the order in which they are found.

use super::super::line::Line;
use super::super::refusal::{Refusal, Rule, Span};
use super::super::rules::Lint;

/// The findings of the rules.
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

    /// The same, with a replacement for the span.
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
