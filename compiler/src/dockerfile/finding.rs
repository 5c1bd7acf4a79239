//! Findings of the Dockerfile parser, as diagnostics: the same under `jobc check` and `jobc image build`.

use jobc_dockerfile::{Refusal, Rule};

use crate::diagnostic::{Code, Diagnostic, Place, Severity, codes};
use crate::source::{SourceId, Span};

/// The code that findings of a rule have.
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
    }
}

/// A refusal or a remark of a Dockerfile, which is `bytes`. What is wrong with the command line, or the job, has no
/// place in it.
pub fn diagnostic(refusal: &Refusal, severity: Severity, source: SourceId, bytes: &[u8]) -> Diagnostic {
    let mut found = Diagnostic::new(code(&refusal.rule), severity, refusal.message.as_str());
    if !refusal.span.is_empty() {
        let (start, end) = (refusal.span.start, refusal.span.end);
        // Bytes that are not text are one character in the excerpt; nothing before them is reported.
        let end = if std::str::from_utf8(bytes).is_ok() { end } else { start + '\u{fffd}'.len_utf8() };
        let span = Span::new(source, start, end);
        found = found.at_span(span, "");
        if let Some(near) = &refusal.near {
            found = found.write(Place::Span(span), near);
        }
    }
    match &refusal.help {
        Some(help) => found.note(help),
        None => found,
    }
}
