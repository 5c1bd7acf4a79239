//! Explains why a YAML text has a syntax error, and finds the mistake.
//!
//! The parser often stops a line after the mistake: an unclosed quote, a tab,
//! a missing space after a colon. This file searches backward for the mistake itself.

use crate::diagnostic::{Code, Diagnostic, Edit, Fix, Location, Safety, codes};
use crate::source::Span;

use super::build::Builder;
use super::flow::{quote, unquoted_expression};
use super::lines::{Lines, Tab, missing_blanks};
use super::{quotes, tabs};

/// Why the parser stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Tab,
    OpenQuote,
    AfterQuote,
    Escape,
    OpenBracket,
    WrongBracket,
    StrayBracket,
    InFlow,
    Colon,
    NoColon,
    Indentation,
    KeyAmongItems,
    DashAfterKey,
    Character,
    Depth,
    Tag,
    Comment,
    NamelessAnchor,
    AfterValue,
    Other(String),
}

/// Reports the error that stopped the parser at a byte.
pub(super) fn report(fault: Fault, at: usize, builder: &mut Builder<'_, '_, '_>) {
    let at = floor(builder.text, at);
    let scene = StopContext {
        text: builder.text,
        at,
        last: floor(builder.text, builder.last().min(at)),
        lines: Lines::new(builder.text, at),
        flow: builder.open_flow(),
        source: builder.report.source(),
    };
    let diagnostic = scene.diagnose(fault);
    builder.report.push(diagnostic);
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&n| text.is_char_boundary(n)).unwrap_or(0)
}

/// The context in which the parser stopped.
struct StopContext<'t> {
    text: &'t str,
    at: usize,
    /// End of the valid part.
    last: usize,
    lines: Lines<'t>,
    /// Start of the outermost and the innermost open bracket.
    flow: Option<(usize, usize)>,
    source: crate::source::SourceId,
}

impl StopContext<'_> {
    fn diagnose(&self, fault: Fault) -> Diagnostic {
        // An unquoted expression causes many different errors, and is the most likely mistake.
        if let Some((outer, _)) = self.flow
            && let Some(scalar) = unquoted_expression(self.text, outer, self.at)
        {
            return self.expression(scalar);
        }
        if let Some(tab) = self.lines.leading_tab(fault == Fault::Tab) {
            return self.tab(&tab);
        }
        match fault {
            Fault::OpenQuote => self.open_quote(),
            Fault::AfterQuote if self.flow.is_some() && self.rest().starts_with(['"', '\'']) => {
                error("a comma is missing between two items")
                    .at_span(self.here(), "expected `,` before this")
                    .fix("add a comma", Location::Span(self.span(self.at, self.at)), ", ", Safety::Safe)
            }
            Fault::AfterQuote => error("unexpected text after the closing quote")
                .at_span(self.rest_of_line(), "not part of the quoted text")
                .note("inside single quotes a quote is written `''`, inside double quotes `\\\"`"),
            Fault::Escape => self.escape(),
            Fault::OpenBracket => self.open_bracket(self.at),
            Fault::WrongBracket => self.wrong_bracket(),
            Fault::StrayBracket => {
                error("unmatched closing bracket: remove it, or quote the text").at_span(self.here(), "")
            }
            Fault::InFlow => self.in_flow(),
            Fault::Colon => self.colon(),
            Fault::NoColon => self.no_colon(),
            Fault::Indentation => error("this line is indented differently from the lines it belongs to")
                .at_span(self.rest_of_line(), "indented by ".to_owned() + &self.lines.indent().to_string())
                .note("all keys of one map, and all items of one list, begin in the same column"),
            Fault::KeyAmongItems => error("a map key is among list items: indent it, or begin it with `- `")
                .at_span(self.rest_of_line(), ""),
            Fault::DashAfterKey => error("a list item is on the line of its key: write it on the next line")
                .at_span(self.here(), "a list begins on a line of its own"),
            Fault::Character => self.character(),
            Fault::Depth => error("lists and maps nest too deep")
                .code(codes::LIMIT)
                .at_span(self.here(), "")
                .note("a job needs about ten levels; is a bracket left open, or a list marked twice?"),
            Fault::Tag => error("this tag means nothing here: remove it, or quote text that begins with `!`")
                .code(codes::TAG)
                .at_span(self.word(), ""),
            Fault::Comment => error("a comment is inside multi-line text, or touches the text before it")
                .at_span(self.here(), "")
                .note("add a space before `#`; quote the text, or write it as a block with `|`"),
            Fault::NamelessAnchor => {
                error("`*` and `&` begin an alias and an anchor, and a name must follow: quote the text")
                    .at_span(self.rest_of_line(), "")
                    .fix("quote it", Location::Span(self.rest_of_line()), quote(self.rest()), Safety::Unsafe)
            }
            Fault::AfterValue => error("unexpected text after the end of the value")
                .at_span(self.rest_of_line(), "not part of the value above"),
            Fault::Tab => {
                error("unexpected tab: use spaces").code(codes::TAB).at_span(self.here(), "near here")
            }
            Fault::Other(text) => error(format!("this is not YAML: {text}")).at_span(self.here(), ""),
        }
    }

    fn expression(&self, scalar: std::ops::Range<usize>) -> Diagnostic {
        let span = self.span(scalar.start, scalar.end);
        let quoted = quote(&self.text[scalar]);
        Diagnostic::error(
            codes::EXPRESSION_IN_FLOW,
            "an expression inside `{}` or `[]` must be quoted, because YAML reads its braces as maps",
        )
        .at_span(span, "not quoted")
        .fix("quote it", Location::Span(span), quoted, Safety::Safe)
    }

    fn tab(&self, tab: &Tab) -> Diagnostic {
        let mut diagnostic = Diagnostic::error(codes::TAB, "a tab indents this line: use spaces")
            .at_span(self.span(tab.at, tab.at + 1), "a tab");
        if let Some((replaced, safety)) = tabs::replaced(self.text) {
            let place = |range: std::ops::Range<usize>| Location::Span(self.span(range.start, range.end));
            let edits =
                replaced.into_iter().map(|(range, text)| Edit { place: place(range), text }).collect();
            let message = "indent with spaces, as the lines around it are".to_owned();
            diagnostic.fixes.push(Fix { message, edits, safety });
        }
        if tab.more > 0 {
            let lines = if tab.more == 1 { "line begins" } else { "lines begin" };
            diagnostic = diagnostic.note(format!("{} more {lines} with a tab", tab.more));
        }
        diagnostic
    }

    fn open_quote(&self) -> Diagnostic {
        let Some(start) = quotes::open_quote(self.text, self.last, self.at) else {
            return error("a quote is not closed").code(codes::UNCLOSED).at_span(self.here(), "");
        };
        let quote = &self.text[start..=start];
        let diagnostic = error(format!("the quote `{quote}` is not closed"))
            .code(codes::UNCLOSED)
            .at_span(self.span(start, start + 1), "opened here");
        if self.at >= self.text.trim_end().len() {
            return diagnostic.note("the text runs on to the end of the file");
        }
        // A text on one line is nearly always intended.
        let line = self.text[start..].find('\n').map_or(self.text.len(), |end| start + end);
        let end = start + self.text[start..line].trim_end().len();
        let place = Location::Span(self.span(end, end));
        diagnostic
            .fix(format!("write `{quote}` at the end of the line"), place, quote, Safety::Unsafe)
            .at_span(self.here(), "this cannot be part of the text")
    }

    fn escape(&self) -> Diagnostic {
        let Some((found, length)) = quotes::bad_escape(&self.text[self.at..]) else {
            return error("invalid YAML escape in this text").at_span(self.here(), "");
        };
        let start = self.at + found;
        let escape = &self.text[start..start + length];
        let place = Location::Span(self.span(start, start + 1));
        error(format!("invalid YAML escape `{escape}`: write `\\{escape}`, or use single quotes"))
            .at_span(self.span(start, start + length), "")
            .note("inside single quotes a backslash is only a backslash")
            .fix("write two backslashes", place, "\\\\", Safety::Unsafe)
    }

    fn open_bracket(&self, opened: usize) -> Diagnostic {
        let opened = floor(self.text, opened);
        let bracket = self.text[opened..].chars().next().filter(|c| matches!(c, '[' | '{'));
        match (bracket, self.flow) {
            (Some(bracket), _) => {
                let diagnostic = error(format!("the bracket `{bracket}` is not closed"))
                    .code(codes::UNCLOSED)
                    .at_span(self.span(opened, opened + 1), "opened here");
                if self.at > opened && self.at < self.text.trim_end().len() {
                    return diagnostic.at_span(self.here(), "this cannot be part of it");
                }
                diagnostic
            }
            (None, Some((_, inner))) if inner != opened => self.open_bracket(inner),
            _ => error("a bracket is not closed").code(codes::UNCLOSED).at_span(self.here(), ""),
        }
    }

    fn wrong_bracket(&self) -> Diagnostic {
        let diagnostic = error("a bracket is closed by one of another kind")
            .code(codes::UNCLOSED)
            .at_span(self.span(self.at, self.at + 1), "opened here");
        match quotes::wrong_close(self.text, self.at) {
            Some(at) => diagnostic.at_span(self.span(at, at + 1), "closed here"),
            None => diagnostic,
        }
    }

    fn in_flow(&self) -> Diagnostic {
        if let Some((_, inner)) = self.flow
            && self.lines.is_outdented_from(inner)
        {
            return self.open_bracket(inner);
        }
        if self.text[self.at..].starts_with(',') {
            return error("expected a value, found a comma: remove it").at_span(self.here(), "");
        }
        error("a comma or a closing bracket is missing before this, or the text needs quotes")
            .at_span(self.here(), "expected `,`, `]` or `}`")
    }

    /// `: ` where a map cannot begin.
    fn colon(&self) -> Diagnostic {
        if let Some(colon) = self.lines.blank_missing_above() {
            return self.missing_blank(colon);
        }
        if let Some(value) = self.lines.value_before(self.at) {
            let span = self.span(value.start, value.end);
            let quoted = quote(&self.text[value]);
            return Diagnostic::error(
                codes::SECOND_COLON,
                "a value holds `: `, which begins a map: quote the value",
            )
            .at_span(span, "")
            .at_span(self.here(), "this colon")
            .fix("quote the value", Location::Span(span), quoted, Safety::Safe);
        }
        if let Some(above) = self.lines.key_above() {
            let own = self.lines.content();
            return error("the key above already has a value, so it cannot contain a map")
                .at_span(self.span(own.start, own.end), "indented deeper than the key above")
                .at_span(self.span(above.start, above.end), "complete on this line");
        }
        error("a map cannot begin here: write it on a line of its own, or quote the text")
            .at_span(self.here(), "this colon")
    }

    /// A line of a map without `: `.
    fn no_colon(&self) -> Diagnostic {
        let content = self.lines.content();
        let line = &self.text[content.clone()];
        if let Some(colon) = missing_blanks(line).and_then(|colons| colons.first().copied()) {
            return self.missing_blank(content.start + colon);
        }
        let dashed =
            line.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric()));
        if dashed {
            let at = content.start;
            let insert = Location::Span(self.span(at + 1, at + 1));
            return Diagnostic::error(codes::MISSING_BLANK, "missing space after the dash of a list item")
                .at_span(self.span(at, at + 1), "")
                .fix("add a space after the dash", insert, " ", Safety::Safe);
        }
        error("this line has no colon: a map's line is `key: value`")
            .at_span(self.span(content.start, content.end), "")
            .note("text of several lines is written as a block: `key: |`, and the text indented below")
    }

    fn missing_blank(&self, colon: usize) -> Diagnostic {
        let insert = Location::Span(self.span(colon + 1, colon + 1));
        Diagnostic::error(codes::MISSING_BLANK, "missing space after the colon")
            .at_span(self.span(colon, colon + 1), "")
            .fix("add a space after the colon", insert, " ", Safety::Safe)
    }

    fn character(&self) -> Diagnostic {
        let first = self.text[self.at..].chars().next().unwrap_or('?');
        let span = self.rest_of_line();
        let name = if first == '`' { "a backtick".to_owned() } else { format!("`{first}`") };
        error(format!("a plain value cannot begin with {name}: quote it")).at_span(span, "").fix(
            "quote it",
            Location::Span(span),
            quote(self.rest()),
            Safety::Safe,
        )
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.source, start, end)
    }

    /// The character at the error.
    fn here(&self) -> Span {
        let length = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        self.span(self.at, self.at + length)
    }

    fn word(&self) -> Span {
        let length = self.text[self.at..].find(char::is_whitespace).unwrap_or(self.text.len() - self.at);
        self.span(self.at, self.at + length)
    }

    /// The text from the error to the end of its line, without a comment.
    fn rest(&self) -> &str {
        let line = self.text[self.at..].lines().next().unwrap_or_default();
        line.split(" #").next().unwrap_or_default().trim_end()
    }

    fn rest_of_line(&self) -> Span {
        self.span(self.at, self.at + self.rest().len())
    }
}

fn error(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::SYNTAX, message)
}

/// Changes a diagnostic's code.
trait WithCode {
    fn code(self, code: Code) -> Self;
}

impl WithCode for Diagnostic {
    fn code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }
}
