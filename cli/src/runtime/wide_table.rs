//! A table of as many columns as its headings, which are known only when it is made.

use crate::table::{escape_control, render};

/// A table for people, with a cell for each heading.
#[derive(Debug)]
pub(crate) struct WideTable {
    rows: Vec<Vec<String>>,
}

impl WideTable {
    /// A table without rows.
    pub(crate) fn new(headings: Vec<String>) -> Self {
        Self { rows: vec![headings] }
    }

    /// Adds a row with a cell for each heading. Control characters are escaped.
    pub(crate) fn row(&mut self, mut cells: Vec<String>) {
        for cell in &mut cells {
            *cell = escape_control(cell);
        }
        cells.resize(self.rows[0].len(), String::new());
        self.rows.push(cells);
    }

    /// The text, as [`crate::table::Table::render`] makes it.
    pub(crate) fn render(&self, columns: Option<usize>) -> String {
        render(&self.rows, columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;

    #[test]
    fn columns_can_be_defined_at_run_time() {
        let rows = [["a.1", "訓練", "it ended well, after a long while"], ["longer.12", "x", "\u{1b}[31m"]];
        let headings = ["ID", "名前", "WHY"];
        let (mut table, mut wide) =
            (Table::new(headings), WideTable::new(headings.map(str::to_owned).to_vec()));
        for row in rows {
            table.row(row.map(str::to_owned));
            wide.row(row.map(str::to_owned).to_vec());
        }
        assert_eq!(wide.render(Some(40)), table.render(Some(40)));
        wide.row(vec!["short".to_owned()]);
        assert!(wide.render(None).ends_with("\nshort\n"));
    }
}
