//! Tables from declared columns, and paragraphs, both at most [`WIDTH`] wide.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Row, presets};
use frugality_operator::{api::Figure, text};

/// Widest line, in characters.
const WIDTH: u16 = 120;
/// Indentation of the first column, and the gap before each other column.
const PADDING: (u16, u16) = (2, 0);

/// How a command prints its tables.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct TableStyle {
    /// Print tables without their headings, which have the units.
    #[arg(long)]
    pub no_headers: bool,
}

/// A table whose cells are texts.
pub(crate) struct Grid {
    columns: Vec<(String, CellAlignment)>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// Headings of the columns.
    pub(crate) fn headings(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(heading, _)| heading.as_str())
    }

    /// Each row's cells, with whether the cell holds a figure. At least one row.
    pub(crate) fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = (&str, bool)>> {
        let is_figure = |alignment: &CellAlignment| *alignment == CellAlignment::Right;
        self.rows.iter().map(move |row| {
            let columns = self.columns.iter();
            let cells = row.iter().zip(columns);
            cells.map(move |(cell, (_, alignment))| (cell.as_str(), is_figure(alignment)))
        })
    }

    /// The lines of text.
    pub(crate) fn print(&self, style: TableStyle) -> String {
        let mut table = blank();
        let cells = |texts: Vec<&str>| {
            let columns = self.columns.iter().map(|(_, alignment)| *alignment);
            let cells = texts.into_iter().zip(columns);
            Row::from(
                cells
                    .map(|(text, alignment)| Cell::new(text).set_alignment(alignment))
                    .collect::<Vec<_>>(),
            )
        };
        if !style.no_headers {
            table.set_header(cells(self.headings().collect()));
        }
        for row in &self.rows {
            table.add_row(cells(row.iter().map(String::as_str).collect()));
        }
        printed(table)
    }
}

/// Rows, and the columns that show them.
pub(crate) struct Table<'a, R> {
    rows: Vec<R>,
    columns: Vec<Column<'a, R>>,
}

struct Column<'a, R> {
    heading: String,
    alignment: CellAlignment,
    cell: CellOf<'a, R>,
}

type CellOf<'a, R> = Box<dyn Fn(&R) -> String + 'a>;

/// The place of a figure that is absent.
pub(crate) fn dash() -> String {
    "–".to_owned()
}

impl<'a, R> Table<'a, R> {
    pub(crate) fn of(rows: impl IntoIterator<Item = R>) -> Self {
        Self {
            rows: rows.into_iter().collect(),
            columns: Vec::new(),
        }
    }

    /// A column of names.
    pub(crate) fn text(self, heading: impl Into<String>, cell: impl Fn(&R) -> String + 'a) -> Self {
        self.column(heading.into(), CellAlignment::Left, Box::new(cell))
    }

    /// A column of figures in a form of their own.
    pub(crate) fn right(
        self,
        heading: impl Into<String>,
        cell: impl Fn(&R) -> String + 'a,
    ) -> Self {
        self.column(heading.into(), CellAlignment::Right, Box::new(cell))
    }

    /// A column of figures with their uncertainty.
    pub(crate) fn figure(
        self,
        heading: impl Into<String>,
        figure: impl Fn(&R) -> Option<Figure> + 'a,
    ) -> Self {
        self.right(heading, move |row| {
            figure(row).map_or_else(dash, |it| text::figure(&it))
        })
    }

    /// A column of numbers.
    pub(crate) fn number(
        self,
        heading: impl Into<String>,
        number: impl Fn(&R) -> Option<f64> + 'a,
    ) -> Self {
        self.right(heading, move |row| {
            number(row).map_or_else(dash, text::number)
        })
    }

    fn column(mut self, heading: String, alignment: CellAlignment, cell: CellOf<'a, R>) -> Self {
        self.columns.push(Column {
            heading,
            alignment,
            cell,
        });
        self
    }

    /// The lines of text; no rows, no table.
    pub(crate) fn print(self, style: TableStyle) -> Option<String> {
        self.grid().map(|it| it.print(style))
    }

    /// The cells; no rows, no table.
    pub(crate) fn grid(self) -> Option<Grid> {
        let cells = |row| self.columns.iter().map(|it| (it.cell)(row)).collect();
        let rows: Vec<_> = self.rows.iter().map(cells).collect();
        let columns = self.columns.into_iter();
        (!rows.is_empty()).then(|| Grid {
            columns: columns.map(|it| (it.heading, it.alignment)).collect(),
            rows,
        })
    }
}

/// Each text as an indented paragraph.
pub(crate) fn paragraphs(texts: impl IntoIterator<Item = String>) -> String {
    let mut table = blank();
    table.add_rows(texts.into_iter().map(|text| [text]));
    if table.is_empty() {
        return String::new();
    }
    printed(table)
}

fn blank() -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH);
    table
}

fn printed(mut table: comfy_table::Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding(PADDING);
    }
    table.trim_fmt() + "\n"
}
