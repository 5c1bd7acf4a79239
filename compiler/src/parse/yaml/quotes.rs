//! Quotes in a text with syntax errors: where a quote is left open, and which escape is invalid.

/// Offset of the quote that is still open at `end`, scanning from a position outside quotes.
pub(super) fn open_quote(text: &str, from: usize, end: usize) -> Option<usize> {
    let mut rest = QuoteScanner { text, at: from };
    while let Some((start, close)) = rest.next_quoted() {
        if start >= end {
            return None;
        }
        if close.is_none_or(|close| close >= end) {
            return Some(start);
        }
    }
    None
}

/// Offset of the first `wanted` outside quotes and comments.
pub(super) fn find_outside(text: &str, from: usize, end: usize, wanted: &[char]) -> Option<usize> {
    let mut at = from;
    let mut quoted = QuoteScanner { text, at: from };
    loop {
        let next = quoted.next_quoted();
        let stop = next.map_or(end, |(start, _)| start.min(end));
        if let Some(found) = text.get(at..stop).and_then(|s| s.find(wanted)) {
            return Some(at + found);
        }
        at = next?.1? + 1;
        if at >= end {
            return None;
        }
    }
}

/// Offset of the bracket that closes the one at `open` but does not match it.
pub(super) fn wrong_close(text: &str, open: usize) -> Option<usize> {
    let close = |at: usize| if text.as_bytes()[at] == b'[' { b']' } else { b'}' };
    let mut stack = vec![close(open)];
    let mut at = open + 1;
    while let Some(found) = find_outside(text, at, text.len(), &['[', ']', '{', '}']) {
        match text.as_bytes()[found] {
            b'[' | b'{' => stack.push(close(found)),
            byte => match stack.pop() {
                Some(expected) if expected == byte && !stack.is_empty() => {}
                Some(expected) if expected != byte => return Some(found),
                _ => return None,
            },
        }
        at = found + 1;
    }
    None
}

/// Offset and length of the first escape that is invalid in double quotes.
pub(super) fn bad_escape(quoted: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    while let Some(found) = quoted[at..].find('\\') {
        let start = at + found;
        let next = quoted[start + 1..].chars().next()?;
        let digits = match next {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            '0' | 'a' | 'b' | 't' | '\t' | 'n' | 'v' | 'f' | 'r' | 'e' | ' ' | '"' | '/' | '\\' | 'N'
            | '_' | 'L' | 'P' | '\n' | '\r' => 0,
            other => return Some((start, 1 + other.len_utf8())),
        };
        let hex = quoted[start + 2..].chars().take(digits).take_while(char::is_ascii_hexdigit).count();
        if hex < digits {
            return Some((start, 2 + hex));
        }
        at = start + 1 + next.len_utf8() + hex;
    }
    None
}

/// Iterates over quoted scalars, outside comments.
struct QuoteScanner<'t> {
    text: &'t str,
    at: usize,
}

impl QuoteScanner<'_> {
    /// The offsets of the quotes of the next quoted scalar.
    fn next_quoted(&mut self) -> Option<(usize, Option<usize>)> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            // A quote or `#` inside a word is part of the word.
            let fresh = self.at == 0
                || matches!(bytes[self.at - 1], b' ' | b'\t' | b'\n' | b'[' | b'{' | b',' | b':');
            match byte {
                b'#' if fresh => {
                    self.at = self.text[self.at..].find('\n').map_or(bytes.len(), |n| self.at + n);
                }
                b'"' | b'\'' if fresh => {
                    let start = self.at;
                    let close = closing(bytes, start);
                    self.at = close.map_or(bytes.len(), |close| close + 1);
                    return Some((start, close));
                }
                _ => self.at += 1,
            }
        }
        None
    }
}

/// Offset of the quote that closes the one at `start`.
fn closing(bytes: &[u8], start: usize) -> Option<usize> {
    let quote = bytes[start];
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        if byte == quote {
            if quote == b'\'' && bytes.get(at + 1) == Some(&quote) {
                at += 2;
                continue;
            }
            return Some(at);
        }
        at += if byte == b'\\' && quote == b'"' { 2 } else { 1 };
    }
    None
}
