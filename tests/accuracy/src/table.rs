//! Tables for a terminal.

use std::fmt::Write as _;

/// A table. Every column is as wide as its widest cell. Numbers are aligned to the right.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these column heads.
    #[must_use]
    pub fn new<const N: usize>(heads: [&str; N]) -> Self {
        Self {
            rows: vec![heads.map(str::to_owned).to_vec()],
        }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: &[String; N]) {
        self.rows.push(cells.to_vec());
    }

    /// The table as lines, each indented by two blanks.
    #[must_use]
    pub fn text(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            let of = |row: &Vec<String>| row.get(column).map_or(0, |cell| cell.chars().count());
            self.rows.iter().map(of).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::from(" ");
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // Writing to a String cannot fail.
                let _ = if column > 0 && is_number(cell, self.rows.get(1), column) {
                    write!(line, " {cell:>width$} ")
                } else {
                    write!(line, " {cell:<width$} ")
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Whether a cell is aligned as a number. A head is aligned like the first cell below it.
fn is_number(cell: &str, first_row: Option<&Vec<String>>, column: usize) -> bool {
    let numeric = |cell: &str| cell.starts_with(|c: char| c.is_ascii_digit()) || cell == "–";
    numeric(cell)
        || first_row
            .and_then(|row| row.get(column))
            .is_some_and(|below| numeric(below))
}

/// A share in percent with two decimals.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(["what", "n", "why"]);
        table.row(&["one".into(), "5".into(), "a".into()]);
        table.row(&["thirteen".into(), "13".into(), "longer".into()]);
        assert_eq!(
            table.text(),
            "  what       n  why\n  one        5  a\n  thirteen  13  longer\n"
        );
    }
}
