//! The colours of charts, by their meaning.

use plotters::style::RGBColor;

/// Colours and line styles of series; further series begin again.
pub(in crate::report) const SERIES: usize = 6;

/// Number of colours and patterns for the reasons of void attempts. Further reasons begin again. Their letters differ.
pub(in crate::report) const VOIDS: usize = 4;

/// What is drawn. The page's style has its colour, pattern and dashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Ink {
    /// Text.
    Text,
    /// Text of less weight.
    Faint,
    /// Lines of a grid.
    Grid,
    /// An axis, and the line of no difference.
    Axis,
    /// Area behind data.
    Track,
    /// A limit.
    Limit,
    /// What lies beyond a limit, as a pattern.
    Beyond,
    /// A limit or a comparison is decided in favour.
    Good,
    /// It is decided against.
    Bad,
    /// It is not decided.
    Open,
    /// The band in which candidates tie.
    Tie,
    /// The noise floor, as a pattern.
    Noise,
    /// A range over all boards.
    Boards,
    /// Points of an optimum's set.
    Among,
    /// A void attempt, as a pattern for its reason.
    Void(usize),
    /// A failed attempt, as a pattern.
    Failed,
    /// An attempt under way.
    Running,
    /// Text on a filled area.
    OnFill,
    /// The word behind figures that no instrument measured.
    Watermark,
    /// Marks and areas of a series.
    Series(usize),
    /// The line of a series. Each series has other dashes.
    Line(usize),
}

const PLAIN: [(Ink, &str); 18] = [
    (Ink::Text, "text"),
    (Ink::Faint, "faint"),
    (Ink::Grid, "grid"),
    (Ink::Axis, "axis"),
    (Ink::Track, "track"),
    (Ink::Limit, "limit"),
    (Ink::Beyond, "beyond"),
    (Ink::Good, "good"),
    (Ink::Bad, "bad"),
    (Ink::Open, "open"),
    (Ink::Tie, "tie"),
    (Ink::Noise, "noise"),
    (Ink::Boards, "boards"),
    (Ink::Among, "among"),
    (Ink::Failed, "failed"),
    (Ink::Running, "running"),
    (Ink::OnFill, "onfill"),
    (Ink::Watermark, "watermark"),
];

/// The first code of the series, of void attempts, and of the series' lines.
const FROM: [usize; 3] = [100, 150, 200];

impl Ink {
    fn code(self) -> usize {
        match self {
            Self::Series(index) => FROM[0] + index % SERIES,
            Self::Void(index) => FROM[1] + index % VOIDS,
            Self::Line(index) => FROM[2] + index % SERIES,
            plain => PLAIN.iter().position(|(ink, _)| *ink == plain).unwrap_or(0),
        }
    }

    /// The colour that stands for the class until the chart is complete.
    pub(super) fn colour(self) -> RGBColor {
        let code = u8::try_from(self.code()).unwrap_or_default();
        RGBColor(MARK[0], MARK[1], code)
    }
}

/// The first two parts of every colour.
const MARK: [u8; 2] = [0xFA, 0xCE];

/// The drawing with classes in place of colours. No text of the drawing can look like a colour's attribute, because its
/// quotation marks are escaped.
pub(super) fn with_classes(drawing: &str) -> String {
    let plain = PLAIN
        .iter()
        .enumerate()
        .map(|(code, (_, name))| (code, (*name).to_owned()));
    let numbered = |from: usize, count: usize, name: &'static str| {
        (0..count).map(move |index| (from + index, format!("{name}{index}")))
    };
    plain
        .chain(numbered(FROM[0], SERIES, "c"))
        .chain(numbered(FROM[1], VOIDS, "void"))
        .chain(numbered(FROM[2], SERIES, "l"))
        .fold(drawing.to_owned(), |drawing, (code, name)| {
            let colour = format!("#{:02X}{:02X}{code:02X}", MARK[0], MARK[1]);
            if !drawing.contains(&colour) {
                return drawing;
            }
            drawing
                .replace(
                    &format!(" fill=\"{colour}\""),
                    &format!(" class=\"f-{name}\""),
                )
                .replace(
                    &format!(" stroke=\"{colour}\""),
                    &format!(" class=\"s-{name}\""),
                )
        })
        .replace(" font-family=\"sans-serif\"", "")
        .replace(" opacity=\"1\"", "")
        .replace(" fill=\"none\" class=\"s-", " class=\"s-")
        .replace(" stroke=\"none\"", "")
}
