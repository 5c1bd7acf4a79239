//! Splits a string into text and expressions.

use std::ops::Range;

/// A piece of a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Literal text.
    Text(&'a str),
    /// An expression.
    Expression(Expression<'a>),
}

/// One `${{ … }}` of a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression<'a> {
    /// The text between `${{` and `}}`, including blanks.
    pub code: &'a str,
    /// The byte range of the whole expression in the string.
    pub range: Range<usize>,
    /// Its number in the string, from 0.
    pub number: usize,
}

/// A `${{` without a matching `}}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnclosedExpression {
    /// The byte offset of the `${{` in the string.
    pub start: usize,
    /// The number that the expression would have had.
    pub number: usize,
}

pub(super) const OPEN: &str = "${{";
const CLOSE: &str = "}}";

/// Whether a string contains a `${{`.
pub fn has_expression(text: &str) -> bool {
    text.contains(OPEN)
}

/// Splits a string into text and expressions, in order; empty text is omitted.
///
/// # Errors
/// Fails at a `${{` without a matching `}}`.
pub fn split(text: &str) -> Result<Vec<Part<'_>>, UnclosedExpression> {
    let mut parts = Vec::new();
    let mut from = 0;
    let mut number = 0;
    while let Some(start) = text[from..].find(OPEN).map(|at| from + at) {
        if start > from {
            parts.push(Part::Text(&text[from..start]));
        }
        let code = &text[start + OPEN.len()..];
        let length =
            closing(code).or_else(|| code.find(CLOSE)).ok_or(UnclosedExpression { start, number })?;
        let end = start + OPEN.len() + length + CLOSE.len();
        let code = &code[..length];
        parts.push(Part::Expression(Expression { code, range: start..end, number }));
        number += 1;
        from = end;
    }
    if from < text.len() {
        parts.push(Part::Text(&text[from..]));
    }
    Ok(parts)
}

/// The expressions of a string; none if one is not closed, which `expand` has reported.
pub fn expressions(text: &str) -> Vec<Expression<'_>> {
    if !has_expression(text) {
        return Vec::new();
    }
    let keep = |part| if let Part::Expression(expression) = part { Some(expression) } else { None };
    split(text).unwrap_or_default().into_iter().filter_map(keep).collect()
}

/// The position of the `}}` that ends the code: outside quotes and nested brackets.
fn closing(code: &str) -> Option<usize> {
    let bytes = code.as_bytes();
    let mut depth = 0_usize;
    let mut quote = None;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if let Some(open) = quote {
            match byte {
                b'\\' => at += 1,
                _ if byte == open => quote = None,
                _ => {}
            }
        } else {
            match byte {
                b'"' | b'\'' => quote = Some(byte),
                b'}' if depth == 0 => return (bytes.get(at + 1) == Some(&b'}')).then_some(at),
                b'{' | b'[' | b'(' => depth += 1,
                b'}' | b']' | b')' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        at += 1;
    }
    None
}
