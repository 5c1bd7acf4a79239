//! Redacts the values of secrets in the output of tasks.

use std::fmt;
use std::ops::Range;

/// The replacement of a secret.
pub(super) const REPLACEMENT: &[u8] = b"***";

/// Values of fewer bytes are not redacted: they would be found in everything.
pub(super) const MIN_SECRET_BYTES: usize = 4;

/// The values of a job's secrets.
///
/// A value of several lines is searched line by line, since logs are lines. A value that a program prints in another
/// form, such as base64, is not found.
#[derive(Default)]
pub struct Redactor {
    /// By first byte, the longest first; none twice.
    values: Vec<Box<[u8]>>,
    /// The values that begin with a byte.
    by_first_byte: Vec<Range<usize>>,
    /// The length of the longest.
    longest: usize,
}

impl Redactor {
    /// A redactor of these values.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let lines = values.into_iter().flat_map(|value| value.split(|&byte| byte == b'\n'));
        let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let mut values: Vec<Box<[u8]>> =
            lines.filter(|line| line.len() >= MIN_SECRET_BYTES).map(Box::from).collect();
        values.sort_by(|a, b| a[0].cmp(&b[0]).then(b.len().cmp(&a.len())).then_with(|| a.cmp(b)));
        values.dedup();
        let longest = values.iter().map(|value| value.len()).max().unwrap_or(0);
        let beginning = (0..=u8::MAX).map(|byte| {
            values.partition_point(|value| value[0] < byte)..values.partition_point(|value| value[0] <= byte)
        });
        Self { by_first_byte: beginning.collect(), values, longest }
    }

    /// Whether nothing is redacted.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// A text with every secret in it redacted.
    pub fn redact(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        self.redact_range(text, 0..text.len(), &mut 0, &mut out);
        out
    }

    /// Appends a range of a text, redacted.
    ///
    /// Values that overlap are redacted as one. `covered` is where the last redacted value ends, possibly behind
    /// the range: the text before it is not shown again.
    pub(super) fn redact_range(
        &self,
        text: &[u8],
        range: Range<usize>,
        covered: &mut usize,
        out: &mut Vec<u8>,
    ) {
        let mut plain = range.start.max(*covered).min(range.end);
        if !self.is_empty() {
            let mut at = range.start;
            while let Some(ahead) = text[at..range.end].iter().position(|&byte| self.may_begin(byte)) {
                at += ahead;
                if let Some(length) = self.longest_match(&text[at..]) {
                    if at >= *covered {
                        out.extend_from_slice(&text[plain..at]);
                        out.extend_from_slice(REPLACEMENT);
                    }
                    *covered = (at + length).max(*covered);
                    plain = (*covered).min(range.end);
                }
                at += 1;
            }
        }
        out.extend_from_slice(&text[plain..range.end]);
    }

    /// Where the undecided part of a text begins: the text's end, or before it the first place where a secret may have
    /// begun.
    pub(super) fn decided_length(&self, text: &[u8]) -> usize {
        let from = text.len().saturating_sub(self.longest.saturating_sub(1));
        (from..text.len()).find(|&at| self.may_continue(&text[at..])).unwrap_or(text.len())
    }

    fn may_begin(&self, byte: u8) -> bool {
        !self.by_first_byte[usize::from(byte)].is_empty()
    }

    /// The length of the longest value at the beginning of a text.
    fn longest_match(&self, text: &[u8]) -> Option<usize> {
        self.of(text).iter().find(|value| text.starts_with(value)).map(|value| value.len())
    }

    /// Whether the whole text is the beginning of a longer value.
    fn may_continue(&self, text: &[u8]) -> bool {
        self.of(text).iter().any(|value| value.len() > text.len() && value.starts_with(text))
    }

    /// The values that begin with the first byte of a text.
    fn of(&self, text: &[u8]) -> &[Box<[u8]>] {
        let Some((&first, false)) = text.first().map(|first| (first, self.is_empty())) else { return &[] };
        &self.values[self.by_first_byte[usize::from(first)].clone()]
    }
}

/// Shows how many there are, and never their values.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({})", self.values.len())
    }
}

#[cfg(test)]
mod tests;
