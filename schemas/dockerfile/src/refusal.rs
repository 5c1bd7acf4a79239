//! What is wrong with a Dockerfile, and where.

use std::fmt;
use std::ops::Range;

use super::rules::Lint;

/// A place in the file: bytes, from and to.
pub type Span = Range<usize>;

/// All that keeps a Dockerfile from being built, in the order of the file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals(pub Vec<Refusal>);

/// Something of a Dockerfile that is wrong, or that the builder does not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where.
    pub span: Span,
    /// What is wrong: lower case, no full stop, names in backticks.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// The word that was meant, instead of what is there.
    pub near: Option<String>,
    /// What it is about.
    pub rule: Rule,
}

/// What a refusal or a remark is about, for who shows it under a code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// The form of the file.
    #[default]
    Syntax,
    /// A name of an image.
    Reference,
    /// The stage that is to be built.
    Target,
    /// The stage that a copy or a mount takes from.
    Source,
    /// A build argument, by its name, that no `ARG` takes.
    Argument(String),
    /// A variable of `FROM`, by its name, that has no value.
    Variable(String),
    /// A path outside the build context.
    Outside,
    /// What other builders do, and this one does not.
    Unsupported,
    /// What every builder accepts and a rule advises against.
    Lint(Lint),
}

impl Rule {
    /// The rule of `docker build --check` that reports the same.
    pub fn lint(&self) -> Option<Lint> {
        match self {
            Self::Lint(lint) => Some(*lint),
            Self::Variable(_) => Some(Lint::UndefinedArgInFrom),
            _ => None,
        }
    }
}

impl Refusal {
    /// A refusal of the text at a place.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None, near: None, rule: Rule::Syntax }
    }

    /// Says what it is about.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rule = rule;
        self
    }

    /// Whether it is about how the file is written, and not about what it does.
    pub fn is_style(&self) -> bool {
        matches!(self.rule, Rule::Lint(lint) if lint.is_style())
    }

    /// Says which word was meant.
    #[must_use]
    pub fn near(mut self, near: Option<impl Into<String>>) -> Self {
        self.near = near.map(Into::into);
        self
    }

    /// Says what to write instead.
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
