//! A text with an editor's positions: lines from 0, and columns in UTF-16 code units or in bytes.

use std::ops::Range;

use lsp_types::{Position, PositionEncodingKind};

/// The unit of a column; LSP section "Position".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// UTF-16 code units, which every client supports.
    #[default]
    Utf16,
    /// Bytes.
    Utf8,
}

impl Encoding {
    /// The encoding for a client: bytes if it supports them, since they need no conversion.
    pub(crate) fn choose(offered: &[PositionEncodingKind]) -> Self {
        if offered.contains(&PositionEncodingKind::UTF8) { Self::Utf8 } else { Self::Utf16 }
    }

    /// The protocol's name for it.
    pub(crate) fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf16 => PositionEncodingKind::UTF16,
            Self::Utf8 => PositionEncodingKind::UTF8,
        }
    }
}

/// A text with the offsets of its lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    whole: String,
    lines: Vec<usize>,
    encoding: Encoding,
}

impl Text {
    pub(crate) fn new(text: String, encoding: Encoding) -> Self {
        let lines = line_starts(&text);
        Self { whole: text, lines, encoding }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.whole
    }

    /// Replaces a range, or everything.
    pub(crate) fn change(&mut self, range: Option<lsp_types::Range>, new: &str) {
        let Some(range) = range else {
            new.clone_into(&mut self.whole);
            self.lines = line_starts(&self.whole);
            return;
        };
        let bytes = self.bytes(range);
        // A `\r` before the change may end its line alone, or together with a `\n` after it.
        let first = self.lines.partition_point(|&start| start <= bytes.start).saturating_sub(2);
        let behind = self.lines.partition_point(|&start| start <= bytes.end + 1);
        let removed = bytes.len();
        let start = self.lines[first];
        self.whole.replace_range(bytes, new);
        let moved = |at: usize| at + new.len() - removed;
        let end = self.lines.get(behind).map_or(self.whole.len(), |&at| moved(at));
        let mut between = line_starts(&self.whole[start..end]);
        if behind < self.lines.len() {
            // Its last line is the one that begins after it.
            between.pop();
        }
        for at in &mut self.lines[behind..] {
            *at = *at + new.len() - removed;
        }
        self.lines.splice(first..behind, between.into_iter().map(|at| start + at));
    }

    /// The position of a byte offset; an offset inside a character is moved to its start.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let mut offset = offset.min(self.whole.len());
        while !self.whole.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.lines.partition_point(|&start| start <= offset) - 1;
        let before = &self.whole[self.lines[line]..offset];
        let column = match self.encoding {
            Encoding::Utf16 => before.encode_utf16().count(),
            Encoding::Utf8 => before.len(),
        };
        Position { line: number(line), character: number(column) }
    }

    /// The byte offset of a position. A column after the end of the line is its end, a line after the last is the end
    /// of the text, and a column inside a character is its start. The protocol requires this, and clients do send such
    /// positions.
    pub(crate) fn offset(&self, position: Position) -> usize {
        let line = self.line(position.line as usize);
        let text = &self.whole[line.clone()];
        let wanted = position.character as usize;
        let mut column = 0;
        for (at, c) in text.char_indices() {
            let width = match self.encoding {
                Encoding::Utf16 => c.len_utf16(),
                Encoding::Utf8 => c.len_utf8(),
            };
            if column + width > wanted {
                return line.start + at;
            }
            column += width;
        }
        line.end
    }

    /// The byte range of a line without its line ending; the end of the text if there is no such line.
    pub(crate) fn line(&self, line: usize) -> Range<usize> {
        let Some(&start) = self.lines.get(line) else { return self.whole.len()..self.whole.len() };
        let end = self.lines.get(line + 1).copied().unwrap_or(self.whole.len());
        start..start + self.whole[start..end].trim_end_matches(['\n', '\r']).len()
    }

    /// The line of an offset.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.lines.partition_point(|&start| start <= offset).max(1) - 1
    }

    /// The number of lines; a text that ends with a line ending has an empty last line.
    pub(crate) fn line_count(&self) -> usize {
        self.lines.len()
    }

    pub(crate) fn range(&self, bytes: Range<usize>) -> lsp_types::Range {
        lsp_types::Range { start: self.position(bytes.start), end: self.position(bytes.end) }
    }

    /// The byte range of a range; a range with swapped ends is empty.
    pub(crate) fn bytes(&self, range: lsp_types::Range) -> Range<usize> {
        let start = self.offset(range.start);
        start..self.offset(range.end).max(start)
    }
}

/// The starts of lines: after `\n`, `\r\n` and a lone `\r`, as in the protocol.
fn line_starts(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let ends = |(at, byte): (usize, &u8)| match byte {
        b'\n' => Some(at + 1),
        b'\r' if bytes.get(at + 1) != Some(&b'\n') => Some(at + 1),
        _ => None,
    };
    std::iter::once(0).chain(bytes.iter().enumerate().filter_map(ends)).collect()
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_use_the_agreed_encoding() {
        let check = |encoding, line, character, offset| {
            let text = Text::new("名: 😀x\r\nb\rc".to_owned(), encoding);
            let position = Position { line, character };
            assert_eq!(text.offset(position), offset, "{encoding:?} {line}:{character}");
            assert_eq!(text.position(offset), position, "{encoding:?} byte {offset}");
        };
        check(Encoding::Utf16, 0, 3, 5);
        check(Encoding::Utf16, 0, 5, 9);
        check(Encoding::Utf8, 0, 9, 9);
        check(Encoding::Utf16, 1, 1, 13);
        check(Encoding::Utf16, 2, 1, 15);
    }

    #[test]
    fn positions_outside_the_text_are_clamped() {
        let text = Text::new("ab\n😀\n".to_owned(), Encoding::Utf16);
        let at = |line, character| text.offset(Position { line, character });
        assert_eq!(at(0, 9), 2, "behind a line is its end");
        assert_eq!(at(9, 0), 8, "behind the last line is the end");
        assert_eq!(at(1, 1), 3, "inside a character is its beginning");
        assert_eq!(text.position(5), Position { line: 1, character: 0 });
    }

    #[test]
    fn lines_after_a_change_are_those_of_the_new_text() {
        let seeds = ["a\nb\nc\n", "a\r\nb\rc\r\n\r\nd", "", "\n", "\r", "one line"];
        for seed in seeds {
            for start in 0..=seed.len() {
                for end in start..=seed.len() {
                    for new in ["", "x", "\n", "\r", "\r\n", "x\ny\n", "\n\n"] {
                        let mut text = Text::new(seed.to_owned(), Encoding::Utf8);
                        let range = text.range(start..end);
                        if text.bytes(range) != (start..end) {
                            // There is no position between `\r` and `\n`.
                            continue;
                        }
                        text.change(Some(range), new);
                        let wanted = line_starts(&text.whole);
                        assert_eq!(text.lines, wanted, "{seed:?} {start}..{end} {new:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_change_shifts_the_lines() {
        let mut text = Text::new("a\nb\nc".to_owned(), Encoding::Utf16);
        let range = text.range(1..3);
        text.change(Some(range), "1\n2\n3");
        assert_eq!(text.as_str(), "a1\n2\n3\nc");
        assert_eq!(text.line(3), 7..8);
        let swapped = lsp_types::Range { start: text.position(4), end: text.position(1) };
        text.change(Some(swapped), "x");
        assert_eq!(text.as_str(), "a1\n2x\n3\nc");
        text.change(None, "");
        assert_eq!((text.as_str(), text.line_count()), ("", 1));
    }
}
