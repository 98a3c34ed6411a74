//! Tables for a terminal.

use std::fmt::Write as _;

/// A table; every column is as wide as its widest cell, numbers to the right.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these heads.
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

    /// The table as lines, two blanks in front of each.
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
                // Writing to a String can't fail.
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

/// Heads stand as the cells below them do.
fn is_number(cell: &str, first_row: Option<&Vec<String>>, column: usize) -> bool {
    let numeric = |cell: &str| cell.starts_with(|c: char| c.is_ascii_digit()) || cell == "–";
    numeric(cell)
        || first_row
            .and_then(|row| row.get(column))
            .is_some_and(|below| numeric(below))
}

/// A share in percent with two digits behind the point.
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
