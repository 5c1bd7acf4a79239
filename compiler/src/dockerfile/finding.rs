//! Findings of the Dockerfile parser, as diagnostics: the same under `jobc check` and `jobc image build`.

use jobc_dockerfile::{Lint, Refusal, Rule};

use crate::diagnostic::{Code, Diagnostic, Location, Severity, codes};
use crate::source::{SourceId, Span};

/// The diagnostic code of a rule's findings.
fn code(rule: &Rule) -> Code {
    match rule {
        Rule::Syntax => codes::DOCKERFILE_SYNTAX,
        Rule::Reference => codes::IMAGE_REFERENCE,
        Rule::Target => codes::DOCKERFILE_STAGE,
        Rule::Source => codes::DOCKERFILE_FROM,
        Rule::Argument(_) => codes::DOCKERFILE_ARGUMENT,
        Rule::Variable(_) => codes::DOCKERFILE_VARIABLE,
        Rule::Outside => codes::DOCKERFILE_OUTSIDE,
        Rule::Unsupported => codes::DOCKERFILE_UNSUPPORTED,
        Rule::Lint(lint) => code_of_lint(*lint),
    }
}

/// The diagnostic code of a rule of `docker build --check`; rules with the same remedy share one.
fn code_of_lint(lint: Lint) -> Code {
    match lint {
        Lint::UndefinedVar => codes::DOCKERFILE_UNDEFINED,
        Lint::UndefinedArgInFrom => codes::DOCKERFILE_VARIABLE,
        Lint::InvalidDefaultArgInFrom => codes::DOCKERFILE_DEFAULT,
        Lint::SecretsUsedInArgOrEnv => codes::DOCKERFILE_SECRET,
        Lint::StageNameCasing => codes::DOCKERFILE_STAGE_CASE,
        Lint::DuplicateStageName | Lint::ReservedStageName => codes::DOCKERFILE_STAGE_NAME,
        Lint::FromAsCasing | Lint::ConsistentInstructionCasing => codes::DOCKERFILE_KEYWORD_CASE,
        Lint::JsonArgsRecommended => codes::DOCKERFILE_SHELL_FORM,
        Lint::LegacyKeyValueFormat => codes::DOCKERFILE_KEY_VALUE,
        Lint::MaintainerDeprecated => codes::DOCKERFILE_MAINTAINER,
        Lint::MultipleInstructionsDisallowed => codes::DOCKERFILE_REPLACED,
        Lint::WorkdirRelativePath => codes::DOCKERFILE_WORKDIR,
        Lint::CopyIgnoredFile => codes::DOCKERFILE_IGNORED,
        Lint::RedundantTargetPlatform | Lint::FromPlatformFlagConstDisallowed => codes::DOCKERFILE_PLATFORM,
        Lint::ExposeProtoCasing | Lint::ExposeInvalidFormat => codes::DOCKERFILE_EXPOSE,
        Lint::NoEmptyContinuation | Lint::InvalidDefinitionDescription => codes::DOCKERFILE_LAYOUT,
    }
}

/// The severity of a finding that does not prevent the build: style findings are notes.
pub fn severity_of_remark(remark: &Refusal) -> Severity {
    if remark.is_style() { Severity::Note } else { Severity::Warning }
}

/// An error or warning about a Dockerfile with the text `bytes`. Errors of the command line or the job have no span.
pub fn diagnostic(refusal: &Refusal, severity: Severity, source: SourceId, bytes: &[u8]) -> Diagnostic {
    let mut found = Diagnostic::new(code(&refusal.rule), severity, refusal.message.as_str());
    // An empty line has an empty span.
    if !refusal.span.is_empty() || matches!(refusal.rule, Rule::Lint(_)) {
        let (start, end) = (refusal.span.start, refusal.span.end);
        // Invalid UTF-8 becomes one character in the excerpt; nothing before it is reported.
        let end = if std::str::from_utf8(bytes).is_ok() { end } else { start + '\u{fffd}'.len_utf8() };
        let span = Span::new(source, start, end);
        found = found.at_span(span, "");
        if let Some(near) = &refusal.near {
            found = found.write(Location::Span(span), near);
        }
    }
    match &refusal.help {
        Some(help) => found.note(help),
        None => found,
    }
}
