//! What an instruction is read with, and what is found to be wrong.

use super::super::refusal::{Refusal, Rule, Span};

/// What was found to be wrong.
#[derive(Default)]
pub(crate) struct Problems {
    /// What no builder takes.
    pub(crate) wrong: Vec<Refusal>,
    /// What this builder does not do: of no weight in a stage that is not built.
    pub(crate) unsupported: Vec<Refusal>,
    /// What forbids nothing.
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

/// A stage that can be taken from.
#[derive(Clone, Debug)]
pub(crate) struct StageRecord {
    pub(crate) name: Option<String>,
    /// Its number in the file.
    pub(crate) number: usize,
    /// What [`ImageOrStage::Stage`] calls it.
    pub(crate) index: usize,
}

/// What an instruction is read with.
pub(crate) struct Scope<'a> {
    pub(crate) escape: char,
    /// The stages before this one.
    pub(crate) earlier: &'a [StageRecord],
    /// This stage's name.
    pub(crate) own: Option<&'a str>,
    /// The names of the later stages, and the number of stages: for error messages.
    pub(crate) later: &'a [String],
    /// Behind `ONBUILD`: a build that is not known yet gives names their meaning.
    pub(crate) deferred: bool,
    pub(crate) problems: &'a mut Problems,
}
