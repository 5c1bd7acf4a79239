//! Tables for people: aligned by display width, cut to the width of a terminal, complete in a pipe.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Spaces between two columns.
const COLUMN_GAP: usize = 2;

/// Minimum width of a column that is cut.
const MIN_COLUMN_WIDTH: usize = 8;

/// Rows of cells under headings.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(headings: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { rows: vec![headings.into_iter().map(Into::into).collect()] }
    }

    /// Adds a row; cells that are left out at its end are empty. Control characters are escaped.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut row: Vec<String> = cells.into_iter().map(|cell| escape_control(&cell)).collect();
        row.resize(self.rows[0].len(), String::new());
        self.rows.push(row);
    }

    /// The text; no line is wider than `columns` unless a column would get too narrow.
    pub(crate) fn render(&self, columns: Option<usize>) -> String {
        let count = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].width()).max().unwrap_or_default();
        let mut widths: Vec<usize> = (0..count).map(width).collect();
        let gaps = COLUMN_GAP * count.saturating_sub(1);
        while let Some(limit) = columns
            && widths.iter().sum::<usize>() + gaps > limit
        {
            // The widest column is cut, of equal ones the last, since explanations are at the end.
            let Some(widest) = widths.iter_mut().rev().max_by_key(|width| **width) else { break };
            if *widest <= MIN_COLUMN_WIDTH {
                break;
            }
            *widest -= 1;
        }
        self.rows.iter().map(|row| line(row, &widths)).collect()
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut out = String::new();
    for (cell, &width) in cells.iter().zip(widths) {
        let cell = truncate(cell, width);
        let fill = (width + COLUMN_GAP).saturating_sub(cell.width());
        out += &cell;
        out.extend(std::iter::repeat_n(' ', fill));
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

/// A text of at most this many columns, with `…` if something is missing.
pub(crate) fn truncate(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut left = width.saturating_sub(1);
    for c in text.chars() {
        let Some(rest) = left.checked_sub(c.width().unwrap_or_default()) else { break };
        left = rest;
        out.push(c);
    }
    out + "…"
}

/// A foreign text with its control characters escaped, so that it cannot control the terminal.
pub(crate) fn escape_control(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["ID", "名前", "WHY"]);
        table.row(["a.1", "訓練", "it ended well, after a long while"].map(str::to_owned));
        table.row(["longer.12", "x", "\u{1b}[31m"].map(str::to_owned));
        table
    }

    #[test]
    fn wide_characters_take_two_columns_and_escapes_none() {
        assert_eq!(
            table().render(None),
            "ID         名前  WHY\n\
             a.1        訓練  it ended well, after a long while\n\
             longer.12  x     \\u{1b}[31m\n"
        );
    }

    #[test]
    fn cells_can_be_left_out_at_the_end() {
        let mut table = Table::new(vec!["ID".to_owned(), "WHY".to_owned()]);
        table.row(["short".to_owned()]);
        assert_eq!(table.render(None), "ID     WHY\nshort\n");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for columns in 25..60 {
            let text = table().render(Some(columns));
            assert!(text.lines().all(|line| line.width() <= columns), "{columns}\n{text}");
        }
        assert_eq!(table().render(Some(28)).lines().nth(1), Some("a.1        訓練  it ended w…"));
        assert_eq!(truncate("訓練中", 4), "訓…", "half a character is none");
    }
}
