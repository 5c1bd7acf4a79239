//! Source texts, and places in them.
//!
//! A [`Span`] is a byte range in one [`Source`]; lines and columns are computed only on demand, so that passes carry
//! eight bytes and a file id.

use camino::{Utf8Path, Utf8PathBuf};

/// Names one source in a [`Sources`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u32);

/// A byte range in one source; `end` is exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The text the range is in.
    pub source: SourceId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// Makes a span from byte offsets.
    pub fn new(source: SourceId, start: usize, end: usize) -> Self {
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self { source, start: clamp(start), end: clamp(end.max(start)) }
    }

    /// Moves the range by a number of bytes.
    pub fn shift(&mut self, by: i32) {
        self.start = self.start.saturating_add_signed(by);
        self.end = self.end.saturating_add_signed(by);
    }

    /// The range as `usize` offsets, for slicing.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A place as people count it: both numbers start at 1, the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    /// Line number, from 1.
    pub line: u32,
    /// Column in characters (not bytes, not terminal cells), from 1.
    pub column: u32,
}

/// One text that diagnostics can point into.
#[derive(Clone, Debug)]
pub struct Source {
    path: Utf8PathBuf,
    text: String,
    /// Byte offset of the start of every line.
    lines: Vec<u32>,
    /// For a template, the `uses` that brought it.
    uses: Option<Span>,
}

impl Source {
    /// Wraps a text under the path that diagnostics will show.
    pub fn new(path: impl Into<Utf8PathBuf>, text: impl Into<String>) -> Self {
        let text = text.into();
        let mut lines = vec![0];
        lines.extend(text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(i, _)| at(i + 1)));
        Self { path: path.into(), text, lines, uses: None }
    }

    /// Notes the place that brought this text in: the `uses` of a template.
    #[must_use]
    pub fn used_at(mut self, uses: Span) -> Self {
        self.uses = Some(uses);
        self
    }

    /// The place that brought this text in; nothing for a file that was named by the user.
    pub fn uses(&self) -> Option<Span> {
        self.uses
    }

    /// The path as the user gave it.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a byte range; empty where the range is not one of this text.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// Line and column of a byte offset, in characters.
    pub fn line_column(&self, offset: u32) -> LineColumn {
        self.locate(offset, |s| s.chars().count())
    }

    /// Line and column of a byte offset with the column in UTF-16 code units, as LSP and SARIF count.
    pub fn line_column_utf16(&self, offset: u32) -> LineColumn {
        self.locate(offset, |s| s.encode_utf16().count())
    }

    /// The byte offset of a line and a column in characters; nothing where the text has no such place.
    pub fn offset(&self, place: LineColumn) -> Option<u32> {
        let start = *self.lines.get(place.line.checked_sub(1)? as usize)? as usize;
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        let column = place.column.checked_sub(1)? as usize;
        let mut starts = line.char_indices().map(|(at, _)| at).chain([line.len()]);
        starts.nth(column).map(|inside| at(start + inside))
    }

    fn locate(&self, offset: u32, measure: impl Fn(&str) -> usize) -> LineColumn {
        let offset = offset.min(at(self.text.len()));
        let line = self.lines.partition_point(|&start| start <= offset) - 1;
        let mut end = offset as usize;
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &self.text[self.lines[line] as usize..end];
        LineColumn { line: at(line + 1), column: at(measure(before) + 1) }
    }
}

fn at(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// All texts of one compilation.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<Source>);

impl Sources {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text and names it.
    pub fn add(&mut self, source: Source) -> SourceId {
        self.0.push(source);
        SourceId(at(self.0.len() - 1))
    }

    /// The text with that id.
    ///
    /// # Panics
    /// If the id is of another set.
    pub fn get(&self, id: SourceId) -> &Source {
        &self.0[id.0 as usize]
    }

    /// The text of a span.
    pub fn slice(&self, span: Span) -> &str {
        self.get(span.source).slice(span)
    }

    /// All texts with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (SourceId, &Source)> {
        self.0.iter().enumerate().map(|(i, s)| (SourceId(at(i)), s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_utf16_units() {
        let source = Source::new("job.yaml", "名前: 😀x\r\nb");
        let x = u32::try_from(source.text().find('x').unwrap()).unwrap();
        assert_eq!(source.line_column(x), LineColumn { line: 1, column: 6 });
        assert_eq!(source.line_column_utf16(x), LineColumn { line: 1, column: 7 });
        let b = u32::try_from(source.text().find('b').unwrap()).unwrap();
        assert_eq!(source.line_column(b), LineColumn { line: 2, column: 1 });
        assert_eq!(source.line_column(u32::MAX), LineColumn { line: 2, column: 2 });
        for offset in [0, x, x + 1, b, b + 1] {
            assert_eq!(source.offset(source.line_column(offset)), Some(offset));
        }
        for (line, column) in [(0, 1), (1, 0), (1, 9), (2, 3), (3, 1)] {
            assert_eq!(source.offset(LineColumn { line, column }), None, "{line}:{column}");
        }
    }
}
