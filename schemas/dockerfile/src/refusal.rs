//! Errors and warnings about a Dockerfile, with their places.

use std::fmt;
use std::ops::Range;

use super::rules::Lint;

/// A byte range in the file.
pub type Span = Range<usize>;

/// All errors that prevent a build, in source order; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals(pub Vec<Refusal>);

/// Something in a Dockerfile that is wrong, or that the builder does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The span.
    pub span: Span,
    /// The message: lower case, no full stop, names in backticks.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// The intended word, as a replacement for the span.
    pub near: Option<String>,
    /// The subject.
    pub rule: Rule,
}

/// The subject of an error or a warning, for tools that show it under a code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// The syntax of the file.
    #[default]
    Syntax,
    /// The name of an image.
    Reference,
    /// The stage to build.
    Target,
    /// The stage that a copy or a mount reads from.
    Source,
    /// A build argument, by name, that no `ARG` declares.
    Argument(String),
    /// A variable of `FROM`, by name, without a value.
    Variable(String),
    /// A path outside the build context.
    Outside,
    /// A feature of other builders that this one lacks.
    Unsupported,
    /// Text that every builder accepts but a rule advises against.
    Lint(Lint),
}

impl Rule {
    /// The equivalent rule of `docker build --check`.
    pub fn lint(&self) -> Option<Lint> {
        match self {
            Self::Lint(lint) => Some(*lint),
            Self::Variable(_) => Some(Lint::UndefinedArgInFrom),
            _ => None,
        }
    }
}

impl Refusal {
    /// Creates an error about the text at a place.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None, near: None, rule: Rule::Syntax }
    }

    /// Sets the subject.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rule = rule;
        self
    }

    /// Whether it is about style, and not about meaning.
    pub fn is_style(&self) -> bool {
        matches!(self.rule, Rule::Lint(lint) if lint.is_style())
    }

    /// Sets the intended word.
    #[must_use]
    pub fn near(mut self, near: Option<impl Into<String>>) -> Self {
        self.near = near.map(Into::into);
        self
    }

    /// Sets what to write instead.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
