//! Numbers: JSON's grammar, and the spellings of other languages.

use crate::diagnostic::{Diagnostic, Location, Safety, codes};
use crate::document::Value;

use super::super::scalar::{self, PlainScalar};
use super::{Loader, shorten};

impl Loader<'_, '_, '_> {
    /// Parses text that begins like a number.
    pub(super) fn number(&mut self) -> Value {
        let start = self.at;
        self.at = self.run(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_'));
        let text = self.text[start..self.at].to_owned();
        let span = self.report.span(start, self.at);
        match scalar::resolve(&text) {
            PlainScalar::Number(number) => {
                if !is_json(&text) {
                    let json = number.to_string();
                    self.spelling(&format!("`{text}` is not a JSON number: write `{json}`"), span, &json);
                }
                Value::Number { number, text }
            }
            PlainScalar::LeadingZero => {
                let message = format!("the number {} begins with a zero", shorten(&text));
                self.report.push(
                    Diagnostic::error(codes::LEADING_ZERO, message)
                        .at_span(span, "octal to some tools, decimal to others")
                        .fix(
                            "quote it if it is text",
                            Location::Span(span),
                            format!("\"{text}\""),
                            Safety::Unsafe,
                        ),
                );
                Value::String(text)
            }
            PlainScalar::TooLarge => {
                let message = format!("the number {} does not fit into 64 bits", shorten(&text));
                self.report.push(Diagnostic::error(codes::NUMBER, message).at_span(span, "").fix(
                    "quote it if it is text",
                    Location::Span(span),
                    format!("\"{text}\""),
                    Safety::Unsafe,
                ));
                Value::String(text)
            }
            _ => {
                let message = format!("`{}` is not JSON: quote it if it is text", shorten(&text));
                self.spelling(&message, span, &format!("\"{text}\""));
                Value::String(text)
            }
        }
    }
}

/// Whether a number that YAML accepts is also valid JSON.
fn is_json(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, _) = digits.split_once(['e', 'E']).unwrap_or((digits, ""));
    let octal_or_hex = digits.starts_with("0x") || digits.starts_with("0o");
    let zeros = mantissa.len() > 1 && mantissa.starts_with('0') && !mantissa.starts_with("0.");
    mantissa.starts_with(|c: char| c.is_ascii_digit()) && !mantissa.ends_with('.') && !octal_or_hex && !zeros
}
