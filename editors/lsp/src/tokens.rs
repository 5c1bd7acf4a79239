//! Semantic tokens: names of the job where they are declared and used, and the parts of an expression.

use jobc_compiler::document::{Node, Value};
use jobc_compiler::expression::{self, CodeSpan};
use jobc_compiler::source::{Source, SourceId, Sources, Span};
use lsp_types::Uri;

use crate::goto;
use crate::names::Kind;
use crate::session::Session;
use crate::text::Text;
use crate::tree::Tree;

/// The types of tokens, in the order of their indexes; all are standard ones.
pub(crate) const TYPES: [&str; 7] =
    ["class", "parameter", "variable", "property", "namespace", "function", "enumMember"];

/// The modifiers of tokens.
pub(crate) const MODIFIERS: [&str; 1] = ["declaration"];

/// One token: its byte range, the index of its type, and whether it is a declaration.
type Token = (std::ops::Range<usize>, u32, bool);

/// The tokens of a text as the protocol encodes them: five numbers each, relative to the previous token.
pub(crate) fn tokens(
    session: &Session<'_>,
    uri: &Uri,
    tree: &Tree,
    lines: Option<lsp_types::Range>,
) -> Vec<u32> {
    let mut found: Vec<Token> = goto::mentions(session, uri, tree)
        .iter()
        .map(|mention| (mention.range.clone(), type_of(mention.name.kind), mention.declares))
        .collect();
    let mut sources = Sources::new();
    let source = sources.add(Source::new("", tree.text.as_str()));
    parts(&tree.document.root, &sources, source, &mut found);
    found.sort_by_key(|(range, ..)| (range.start, std::cmp::Reverse(range.end)));
    encoded(&tree.text, found, lines)
}

fn type_of(kind: Kind) -> u32 {
    let name = match kind {
        Kind::Role => "class",
        Kind::Param | Kind::Axis | Kind::Argument => "parameter",
        Kind::Data | Kind::Output | Kind::Secret => "variable",
        Kind::Image | Kind::Target => "namespace",
        Kind::Port => "enumMember",
    };
    number(name)
}

fn number(name: &str) -> u32 {
    let at = TYPES.iter().position(|known| *known == name).expect("a type of the list");
    u32::try_from(at).unwrap_or_default()
}

/// The scopes, fields and filters in expressions; their names are mentions.
fn parts(node: &Node, sources: &Sources, source: SourceId, found: &mut Vec<Token>) {
    match &node.value {
        Value::String(text) if expression::has_expression(text) => {
            for expression in expression::expressions(text) {
                let code = CodeSpan::find(sources, Span { source, ..node.span }, text, &expression);
                if !code.exact {
                    continue;
                }
                let mut add = |range: &std::ops::Range<usize>, name: &str| {
                    found.push((code.part(expression.code, Some(range)).range(), number(name), false));
                };
                for path in expression::paths(expression.code) {
                    for (depth, step) in path.steps.iter().enumerate() {
                        if depth == 0 {
                            add(&step.range, "namespace");
                        } else if matches!(step.key, expression::Key::Name(_)) {
                            add(&step.range, "property");
                        }
                    }
                }
                for (at, _) in expression.code.match_indices('|') {
                    let rest = &expression.code[at + 1..];
                    let start = at + 1 + rest.len() - rest.trim_start().len();
                    let word = expression.code[start..].find(|c: char| !(c.is_alphanumeric() || c == '_'));
                    let end = word.map_or(expression.code.len(), |word| start + word);
                    if end > start {
                        add(&(start..end), "function");
                    }
                }
            }
        }
        Value::Mapping(entries) => {
            for entry in entries {
                parts(&entry.value, sources, source, found);
            }
        }
        Value::Sequence(items) => {
            for item in items {
                parts(item, sources, source, found);
            }
        }
        _ => {}
    }
}

/// Tokens that neither overlap nor extend beyond their line.
fn encoded(text: &Text, tokens: Vec<Token>, lines: Option<lsp_types::Range>) -> Vec<u32> {
    let mut out = vec![];
    let (mut line, mut column, mut end) = (0, 0, 0);
    for (bytes, kind, declares) in tokens {
        let range = text.range(bytes.clone());
        let wanted =
            lines.is_none_or(|lines| (lines.start.line..=lines.end.line).contains(&range.start.line));
        if bytes.start < end || bytes.is_empty() || range.start.line != range.end.line || !wanted {
            continue;
        }
        end = bytes.end;
        let same = range.start.line == line;
        out.extend([
            range.start.line - line,
            range.start.character - if same { column } else { 0 },
            range.end.character - range.start.character,
            kind,
            u32::from(declares),
        ]);
        (line, column) = (range.start.line, range.start.character);
    }
    out
}
