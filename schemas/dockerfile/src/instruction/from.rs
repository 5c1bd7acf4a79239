//! Sources of files: a stage or an image.

use jobc_schema::Reference;

use super::super::forms::ImageOrStage;
use super::super::refusal::{Refusal, Rule, Span};
use super::scope::{Problems, Scope};

/// Resolves `--from=`: a previous stage, else an image.
pub(super) fn source(text: &str, span: Span, scope: &mut Scope<'_>) -> Option<ImageOrStage> {
    if text.contains('$') {
        scope.problems.refuse_by(
            Rule::Source,
            span,
            "variables are not allowed in `from`",
            "name the image at the top, `FROM $IMAGE AS name`, and use that name",
        );
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let named = scope.earlier.iter().rev().find(|stage| stage.name.as_deref() == Some(&lower));
    let number = text.parse::<usize>().ok();
    let found = named.or_else(|| scope.earlier.iter().find(|stage| Some(stage.number) == number));
    if let Some(stage) = found {
        return Some(ImageOrStage::Stage(stage.index));
    }
    if scope.deferred {
        return Some(ImageOrStage::Image { reference: text.to_owned(), platform: None, span });
    }
    if scope.own == Some(&lower) || number == Some(scope.earlier.len()) {
        scope.problems.refuse_by(
            Rule::Source,
            span,
            format!("`{text}` is this stage itself"),
            "a stage can only use stages above it",
        );
        return None;
    }
    if number.is_some() || scope.later.contains(&lower) {
        let message = match number {
            Some(number) if number > scope.earlier.len() + scope.later.len() => {
                format!("unknown stage {number}")
            }
            _ => format!("the stage `{text}` is defined later"),
        };
        scope.problems.refuse_by(
            Rule::Source,
            span,
            message,
            "a stage can only use stages above it, numbered from 0",
        );
        return None;
    }
    if lower == "scratch" {
        return Some(ImageOrStage::Scratch);
    }
    image(text, None, span, scope.problems)
}

/// An image by its reference, if that is valid.
pub(crate) fn image(
    text: &str,
    platform: Option<String>,
    span: Span,
    problems: &mut Problems,
) -> Option<ImageOrStage> {
    if let Err(error) = text.parse::<Reference>() {
        // The span of the error, if the file contains the name verbatim.
        let inner = span.start + error.span.start..span.start + error.span.end;
        let exact = span.len() == text.len() && !error.span.is_empty();
        let place = if exact { inner } else { span };
        problems.wrong.push(Refusal::new(place, error.finding()).help(error.help()).rule(Rule::Reference));
        return None;
    }
    Some(ImageOrStage::Image { reference: text.to_owned(), platform, span })
}
