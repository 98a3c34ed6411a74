//! Drawing with plotters into SVG. Colours are names of CSS classes, so that the page's style decides them: light, dark or
//! printed.

pub(super) mod axis;
pub(super) mod ink;

use std::fmt::Display;

use maud::{Markup, PreEscaped, Render as _, html};
use plotters::{
    coord::Shift,
    element::Drawable,
    prelude::{
        Circle, DrawingArea, IntoDrawingArea as _, IntoFont as _, PathElement, Polygon, Rectangle,
        SVGBackend, Text,
    },
    style::{
        Color as _, FontStyle, IntoTextStyle as _,
        text_anchor::{HPos, Pos, VPos},
    },
};

use self::ink::Ink;

/// Width of each chart in its own units. The page scales it.
pub(super) const WIDTH: i32 = 1000;
/// Size of the usual text.
pub(super) const TEXT: i32 = 18;
/// Size of the text of axes.
pub(super) const SMALL: i32 = 16;
/// plotters divides a font's size by this factor.
const FONT_FACTOR: f64 = 1.24;

/// A point in units of the chart.
pub(super) type Pixel = (i32, i32);

/// Why a chart can't be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw a chart: {0}. This is a fault of this program.")]
pub struct ChartError(String);

/// Side of the text at which its position is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Start,
    Middle,
    End,
}

/// A chart that is being drawn.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
    /// The first failure. Later ones follow from it.
    failure: Option<ChartError>,
}

/// A chart with the texts that describe it.
pub(super) struct Chart {
    /// Name of the chart within the page.
    pub(super) id: &'static str,
    /// What the chart shows.
    pub(super) title: String,
    /// The same in sentences, for readers who do not see the chart.
    pub(super) description: String,
    /// Its height in units.
    pub(super) height: i32,
}

impl Chart {
    /// The chart as SVG, with role, name and description.
    pub(super) fn draw(
        &self,
        number: usize,
        draw: impl FnOnce(&mut Canvas<'_>),
    ) -> Result<Markup, ChartError> {
        let mut drawn = String::new();
        let size = (WIDTH.unsigned_abs(), self.height.unsigned_abs());
        let failure = {
            let area = SVGBackend::with_string(&mut drawn, size).into_drawing_area();
            let mut canvas = Canvas {
                area,
                failure: None,
            };
            draw(&mut canvas);
            let presented = canvas.area.present();
            canvas.keep(presented);
            canvas.failure
        };
        if let Some(failure) = failure {
            return Err(failure);
        }
        let inside = drawn
            .split_once('>')
            .map(|(_, inside)| ink::with_classes(inside))
            .unwrap_or_default();
        let [title, description] = ["t", "d"].map(|of| format!("{}-{number}-{of}", self.id));
        let head = html! {
            title id=(title) { (self.title) }
            desc id=(description) { (self.description) }
        };
        Ok(PreEscaped(format!(
            "<svg role=\"img\" aria-labelledby=\"{title} {description}\" viewBox=\"0 0 {WIDTH} {}\">{}{inside}",
            self.height,
            head.render().0,
        )))
    }
}

impl Canvas<'_> {
    fn keep<E: Display>(&mut self, step: Result<(), E>) {
        if let Err(error) = step {
            self.failure
                .get_or_insert_with(|| ChartError(error.to_string()));
        }
    }

    fn element<E>(&mut self, element: &E)
    where
        for<'b> &'b E: plotters::element::PointCollection<'b, Pixel>,
        for<'b> E: Drawable<SVGBackend<'b>>,
    {
        let drawn = self.area.draw(element);
        self.keep(drawn);
    }

    /// A line through these points.
    pub(super) fn line(&mut self, points: impl IntoIterator<Item = Pixel>, ink: Ink, width: u32) {
        let points: Vec<_> = points.into_iter().collect();
        self.element(&PathElement::new(points, ink.colour().stroke_width(width)));
    }

    /// A filled rectangle.
    pub(super) fn rectangle(&mut self, from: Pixel, to: Pixel, ink: Ink) {
        self.element(&Rectangle::new([from, to], ink.colour().filled()));
    }

    /// The outline of a circle.
    pub(super) fn ring(&mut self, at: Pixel, radius: i32, ink: Ink) {
        self.element(&Circle::new(at, radius, ink.colour().stroke_width(2)));
    }

    /// The outline of a rectangle.
    pub(super) fn frame(&mut self, (left, top): Pixel, (right, bottom): Pixel, ink: Ink) {
        let corners = [
            (left, top),
            (right, top),
            (right, bottom),
            (left, bottom),
            (left, top),
        ];
        self.line(corners, ink, 2);
    }

    /// A filled polygon.
    pub(super) fn polygon(&mut self, points: impl IntoIterator<Item = Pixel>, ink: Ink) {
        let points: Vec<_> = points.into_iter().collect();
        self.element(&Polygon::new(points, ink.colour().filled()));
    }

    /// A text on one line, vertically centred.
    pub(super) fn text(&mut self, text: &str, at: Pixel, align: Align, size: i32, ink: Ink) {
        self.styled(text, at, align, size, ink, FontStyle::Normal);
    }

    /// The same in bold.
    pub(super) fn bold(&mut self, text: &str, at: Pixel, align: Align, size: i32, ink: Ink) {
        self.styled(text, at, align, size, ink, FontStyle::Bold);
    }

    fn styled(
        &mut self,
        text: &str,
        at: Pixel,
        align: Align,
        size: i32,
        ink: Ink,
        style: FontStyle,
    ) {
        let align = match align {
            Align::Start => HPos::Left,
            Align::Middle => HPos::Center,
            Align::End => HPos::Right,
        };
        let colour = ink.colour();
        let style = ("sans-serif", f64::from(size) * FONT_FACTOR, style)
            .into_font()
            .into_text_style(&self.area)
            .color(&colour)
            .pos(Pos::new(align, VPos::Center));
        self.element(&Text::new(text.to_owned(), at, style));
    }

    /// A mark for a series: the shape differs from series to series, as the colour does.
    pub(super) fn mark(&mut self, (x, y): Pixel, series: usize, size: i32) {
        let ink = Ink::Series(series);
        let at = |dx: i32, dy: i32| (x + dx * size / 10, y + dy * size / 10);
        match series % 6 {
            0 => self.element(&Circle::new((x, y), size, ink.colour().filled())),
            1 => self.rectangle(at(-9, -9), at(9, 9), ink),
            2 => self.polygon([at(0, -12), at(12, 9), at(-12, 9)], ink),
            3 => self.polygon([at(0, -13), at(13, 0), at(0, 13), at(-13, 0)], ink),
            4 => self.polygon([at(0, 12), at(12, -9), at(-12, -9)], ink),
            _ => {
                self.line([at(-9, -9), at(9, 9)], ink, 4);
                self.line([at(-9, 9), at(9, -9)], ink, 4);
            }
        }
    }

    /// A horizontal interval with ends.
    pub(super) fn interval(&mut self, from: i32, to: i32, y: i32, ink: Ink) {
        self.line([(from, y), (to, y)], ink, 3);
        for x in [from, to] {
            self.line([(x, y - 7), (x, y + 7)], ink, 3);
        }
    }

    /// A vertical interval with ends.
    pub(super) fn upright(&mut self, x: i32, from: i32, to: i32, ink: Ink) {
        self.line([(x, from), (x, to)], ink, 3);
        for y in [from, to] {
            self.line([(x - 6, y), (x + 6, y)], ink, 3);
        }
    }
}
