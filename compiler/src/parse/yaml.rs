//! Parses YAML text into a tree. Only this file and its modules depend on the parser's crate.

mod blank;
mod braces;
mod build;
mod flow;
mod lines;
mod punctuation;
mod quotes;
mod syntax;
mod tabs;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, StructureStyle, Tag, options};

use crate::diagnostic::{Diagnostic, Location, Safety, codes};
use crate::document::Node;

use super::limits::MAX_DEPTH;
use super::report::Report;
use build::{Builder, Scalar, Style};
use syntax::Fault;

/// Parses a YAML text; `None` if its syntax is invalid or it is empty.
pub(super) fn load(text: &str, report: &mut Report<'_>) -> Option<Node> {
    if blank::report_odd(text, report) {
        return None;
    }
    let options = options! {
        emit_comments: false,
        emit_anchor_events: true,
        emit_unresolved_aliases: true,
        // One more than our limit, so that our own message is reported first.
        flow_nesting_limit: MAX_DEPTH + 1,
        block_nesting_limit: MAX_DEPTH + 1,
    };
    let mut builder = Builder::new(text, report);
    let mut first_document = None;
    let mut objects: Vec<Node> = Vec::new();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                if punctuation::report(text, builder.report) {
                    return None;
                }
                let at = error.marker().byte_offset().unwrap_or(text.len()).min(text.len());
                builder.report_open_merges();
                if !builder.report_braces(Some(at)) {
                    syntax::report(fault(&error), at, &mut builder);
                }
                return None;
            }
        };
        let range = span.byte_range().unwrap_or_default();
        if let Some(tag) = event.tag() {
            let at = span.tag_span().and_then(|s| s.byte_range()).unwrap_or(range.clone());
            builder.tag(tag.core_suffix().map(str::to_owned), at);
        }
        let goes_on = match event {
            Event::DocumentStart(explicit, version) => {
                if version.is_some_and(|v| (v.major, v.minor) != (1, 2)) {
                    other_version(text, &mut builder);
                }
                match first_document.replace(range.clone()) {
                    None => true,
                    // A file of Kubernetes holds several objects.
                    Some(_) if builder.take_object(&mut objects) => true,
                    Some(first) => {
                        several_documents(explicit, first, range, &mut builder);
                        break;
                    }
                }
            }
            Event::Scalar(value, style, anchor, tag) => {
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
                    ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                };
                let absent = absent(&value, style, tag.as_deref(), range.is_empty());
                builder.scalar(Scalar { value, style, absent, range }, anchor)
            }
            Event::SequenceStart(style, anchor, _) => {
                builder.open_list(range, style == StructureStyle::Flow, anchor)
            }
            Event::MappingStart(style, anchor, _) => {
                builder.open_map(range, style == StructureStyle::Flow, anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => builder.close(range.end),
            Event::Alias(id) => builder.alias(id, range),
            Event::UnresolvedAlias(name) => builder.unknown_alias(&name, range),
            Event::Anchor(id, name) => builder.name_anchor(id, &name),
            _ => true,
        };
        if !goes_on {
            return None;
        }
    }
    if punctuation::report_sound(text, builder.report) {
        return None;
    }
    builder.report_braces(None);
    if objects.is_empty() { builder.finish() } else { Some(builder.finish_list(objects)) }
}

/// Whether a text is syntactically valid YAML.
fn is_yaml(text: &str) -> bool {
    Parser::new_from_str(text).all(|event| event.is_ok())
}

/// Whether the value is absent: the parser then reports a `~`.
fn absent(value: &str, style: Style, tag: Option<&Tag>, empty: bool) -> bool {
    style == Style::Plain && empty && (value == "~" || tag.is_some())
}

/// Our message for a parser's error.
fn fault(error: &ScanError) -> Fault {
    match error.kind() {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInPlainScalar
        | ErrorKind::InvalidBlockEntryWhitespace => Fault::Tab,
        ErrorKind::UnclosedQuotedScalar
        | ErrorKind::InvalidQuotedScalarIndent
        | ErrorKind::DocumentIndicatorInQuotedScalar => Fault::OpenQuote,
        ErrorKind::InvalidTrailingSingleQuotedScalar | ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            Fault::AfterQuote
        }
        ErrorKind::UnknownQuotedScalarEscape
        | ErrorKind::InvalidQuotedScalarHexEscape
        | ErrorKind::InvalidLowSurrogateHexEscape
        | ErrorKind::InvalidLowSurrogate
        | ErrorKind::MissingLowSurrogate
        | ErrorKind::UnpairedLowSurrogate
        | ErrorKind::InvalidUnicodeEscape => Fault::Escape,
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofFlowSequence => Fault::OpenBracket,
        ErrorKind::MismatchedFlowCollectionEnd { .. } => Fault::WrongBracket,
        ErrorKind::MisplacedFlowCollectionEnd => Fault::StrayBracket,
        ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::FlowMappingValueAdjacentCollection
        | ErrorKind::InvalidFlowScalarIndent
        | ErrorKind::BlockEntryInFlowCollection
        | ErrorKind::PlainScalarStartsWithDashFlowIndicator
        | ErrorKind::InvalidColonPlacement => Fault::InFlow,
        ErrorKind::MappingValueNotAllowed => Fault::Colon,
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => Fault::NoColon,
        ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::InvalidIndentation
        | ErrorKind::InvalidBlockScalarIndent => Fault::Indentation,
        ErrorKind::ExpectedBlockSequenceEntry => Fault::KeyAmongItems,
        ErrorKind::BlockSequenceEntryNotAllowed => Fault::DashAfterKey,
        ErrorKind::UnexpectedCharacter { .. } => Fault::Character,
        ErrorKind::RecursionLimitExceeded => Fault::Depth,
        ErrorKind::UndeclaredTagHandle => Fault::Tag,
        ErrorKind::CommentInterceptedScalar | ErrorKind::CommentNotSeparated => Fault::Comment,
        ErrorKind::MissingAnchorOrAliasName => Fault::NamelessAnchor,
        ErrorKind::ExpectedDocumentStart => Fault::AfterValue,
        kind => Fault::Other(kind.to_string()),
    }
}

fn other_version(text: &str, builder: &mut Builder<'_, '_, '_>) {
    let at = text.find("%YAML").unwrap_or_default();
    let end = text[at..].find(['\r', '\n']).map_or(text.len(), |n| at + n);
    let span = builder.report.span(at, end);
    builder.report.push(
        Diagnostic::error(codes::SYNTAX, "this is read as YAML 1.2: remove the `%YAML` line")
            .at_span(span, "asks for another version"),
    );
}

fn several_documents(
    explicit: bool,
    first: std::ops::Range<usize>,
    second: std::ops::Range<usize>,
    builder: &mut Builder<'_, '_, '_>,
) {
    let text =
        if explicit { "a second document begins here" } else { "a second document begins after `...`" };
    let first_character = |at: usize| builder.text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
    let first_end = first.end.max(first_character(first.start));
    let second_end = second.end.max(first_character(second.start));
    let (first, second) =
        (builder.report.span(first.start, first_end), builder.report.span(second.start, second_end));
    let mut diagnostic =
        Diagnostic::error(codes::SEVERAL_DOCUMENTS, "the file contains more than one document")
            .at_span(second, text)
            .at_span(first, "the first begins here")
            .note("write each job to a file of its own, or remove the `---`");
    let start = second.start as usize;
    if let Some(end) = goes_on(builder.text, start) {
        let line = Location::Span(builder.report.span(start, end));
        diagnostic = diagnostic.fix("remove the `---`", line, "", Safety::Unsafe);
    }
    builder.report.push(diagnostic);
}

/// The end of the lines that separate two documents, if the second one continues with other keys of the same job. Its
/// `version` is one of those lines.
fn goes_on(text: &str, marker: usize) -> Option<usize> {
    let (before, after) = (text.get(..marker)?, text.get(marker..)?.strip_prefix("---\n")?);
    let skipped = "---\n".len() + if after.starts_with("version: 1\n") { "version: 1\n".len() } else { 0 };
    let key =
        |line: &'_ str| line.split_once(':').map(|(key, _)| key.to_owned()).filter(|key| !key.is_empty());
    let keys = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()))
            .filter_map(key)
            .collect()
    };
    let (first, second) = (keys(before), keys(&text[marker + skipped..]));
    let new = !second.is_empty() && !second.iter().any(|key| first.contains(key));
    new.then_some(marker + skipped)
}
