//! The context for parsing an instruction, and the findings about it.

use super::super::refusal::{Refusal, Rule, Span};

/// Findings, by severity.
#[derive(Default)]
pub(crate) struct Problems {
    /// Errors in every builder.
    pub(crate) wrong: Vec<Refusal>,
    /// Features that this builder lacks: ignored in a stage that is not built.
    pub(crate) unsupported: Vec<Refusal>,
    /// Warnings.
    pub(crate) remarks: Vec<Refusal>,
}

impl Problems {
    pub(crate) fn wrong(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.wrong.push(Refusal::new(span, message).help(help));
    }

    pub(crate) fn refuse_by(&mut self, rule: Rule, span: Span, message: impl Into<String>, help: &str) {
        self.wrong.push(Refusal::new(span, message).help(help).rule(rule));
    }

    pub(crate) fn unsupported(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.unsupported.push(Refusal::new(span, message).help(help).rule(Rule::Unsupported));
    }

    pub(crate) fn remark(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.remarks.push(Refusal::new(span, message).help(help));
    }
}

/// A stage that later stages can copy from.
#[derive(Clone, Debug)]
pub(crate) struct StageRecord {
    pub(crate) name: Option<String>,
    /// Its number in the file.
    pub(crate) number: usize,
    /// Its index in [`ImageOrStage::Stage`].
    pub(crate) index: usize,
}

/// The context for parsing an instruction.
pub(crate) struct Scope<'a> {
    pub(crate) escape: char,
    /// The previous stages.
    pub(crate) earlier: &'a [StageRecord],
    /// This stage's name.
    pub(crate) own: Option<&'a str>,
    /// The names of the later stages, and the number of stages, for error messages.
    pub(crate) later: &'a [String],
    /// Whether it is in `ONBUILD`: the names of stages are those of a later build.
    pub(crate) deferred: bool,
    pub(crate) problems: &'a mut Problems,
}
