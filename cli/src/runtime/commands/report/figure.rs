//! A plot: axes, what is drawn between them, a legend, and its data as a table.

use super::chart::{Scale, format_number};
use super::html::{Cell, escape, table};
use super::series::{Point, downsample};

/// The size of a plot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    width: f64,
    height: f64,
    left: f64,
}

/// One of several plots side by side.
pub(super) const SMALL: Frame = Frame { width: 400.0, height: 200.0, left: 74.0 };

/// One as wide as the page, which scrolls where the page is narrower.
pub(super) const WIDE: Frame = Frame { width: 1000.0, height: 170.0, left: 56.0 };

const RIGHT: f64 = 16.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 38.0;

/// The width of a character of a label.
const CHARACTER: f64 = 7.4;

impl Frame {
    /// The horizontal axis.
    pub(super) fn x(&self, from: f64, to: f64) -> Scale {
        Scale { from, to, first: self.left, last: self.width - RIGHT, is_log: false }
    }

    /// The vertical axis.
    pub(super) fn y(&self, from: f64, to: f64) -> Scale {
        Scale { from, to, first: self.height - BOTTOM, last: TOP, is_log: false }
    }
}

/// An axis with its labels.
pub(super) struct Axis<'a> {
    pub scale: Scale,
    pub ticks: Vec<(f64, String)>,
    /// Written below a horizontal axis.
    pub title: &'a str,
}

/// A plot without its content.
pub(super) struct Figure<'a> {
    pub frame: Frame,
    pub title: &'a str,
    /// What it shows, in a sentence.
    pub description: &'a str,
    pub x: Axis<'a>,
    pub y: Axis<'a>,
}

/// The numbers of a plot.
pub(super) struct Data<'a> {
    pub headings: &'a [&'a str],
    pub rows: Vec<Vec<Cell>>,
}

impl Figure<'_> {
    /// The plot with this content.
    pub(super) fn draw(&self, marks: &str, legend: &str, data: &Data<'_>) -> String {
        let Frame { width, height, left } = self.frame;
        let is_wide = width > SMALL.width;
        let (class, before, after) = if is_wide {
            let region = format!(
                "<div class=\"rows\" role=\"region\" aria-label=\"{}\" tabindex=\"0\">",
                escape(self.title)
            );
            (" class=\"activity\"", region, "</div>")
        } else {
            ("", String::new(), "")
        };
        let mut out = format!(
            "<figure{class}><figcaption>{}</figcaption>\n{before}{}",
            escape(self.title),
            open_svg(width, height, self.title, self.description)
        );
        for (value, label) in &self.y.ticks {
            let y = self.y.scale.position(*value);
            out += &format!(
                "<line x1=\"{left}\" x2=\"{}\" y1=\"{2}\" y2=\"{2}\" class=\"grid\"/><text x=\"{1}\" y=\"{3}\" class=\"tick end\">{4}</text>",
                width - RIGHT,
                left - 5.0,
                format_number(y),
                format_number(y + 4.0),
                escape(label),
            );
        }
        let base = self.y.scale.first;
        for (value, label) in &self.x.ticks {
            out += &x_label(&self.x.scale, *value, label, base + 15.0);
        }
        out += &format!(
            "<text x=\"{}\" y=\"{}\" class=\"tick mid\">{}</text>",
            format_number(f64::midpoint(left, width - RIGHT)),
            height - 6.0,
            escape(self.x.title),
        );
        out += marks;
        out += &format!("</svg>{after}\n<p class=\"legend\">{legend}</p>\n");
        if !data.rows.is_empty() {
            let table = table(&format!("Data: {}", self.description), data.headings, &data.rows);
            out += &format!("<details class=\"data\"><summary>Data</summary>\n{table}</details>");
        }
        out + "</figure>\n"
    }
}

/// The beginning of a drawing, with its name and description for screen readers.
pub(super) fn open_svg(width: f64, height: f64, title: &str, description: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\"><title>{}</title><desc>{}</desc>",
        escape(title),
        escape(description)
    )
}

/// A label of a horizontal axis. One at its end stays within the drawing.
pub(super) fn x_label(x: &Scale, value: f64, label: &str, y: f64) -> String {
    let at = x.position(value);
    #[allow(clippy::cast_precision_loss)] // a few characters
    let half = label.chars().count() as f64 * CHARACTER / 2.0;
    let (class, at) = if at + half > x.last { ("tick end", x.last.max(at)) } else { ("tick mid", at) };
    format!(
        "<text x=\"{}\" y=\"{}\" class=\"{class}\">{}</text>",
        format_number(at),
        format_number(y),
        escape(label)
    )
}

/// A line in pieces, with a tooltip. A piece that is only a point is a dot.
pub(super) fn line(
    class: &str,
    title: &str,
    pieces: &[Vec<Point>],
    (x, y): (&Scale, &Scale),
    buckets: usize,
) -> String {
    let mut out = format!("<g class=\"line {class}\"><title>{}</title>", escape(title));
    for piece in pieces {
        let thin = downsample(piece, (x.from, x.to), buckets);
        let points: Vec<String> = thin.iter().map(|point| place(x, y, *point)).collect();
        out += &match &thin[..] {
            [only] => format!(
                "<circle cx=\"{}\" cy=\"{}\" r=\"2\"/>",
                format_number(x.position(only.0)),
                format_number(y.position(only.1))
            ),
            _ => format!("<polyline points=\"{}\"/>", points.join(" ")),
        };
    }
    out + "</g>"
}

/// A point as drawings write it.
pub(super) fn place(x: &Scale, y: &Scale, (at, value): Point) -> String {
    format!("{},{}", format_number(x.position(at)), format_number(y.position(value)))
}

/// A cross, of which the middle is at this place.
pub(super) fn cross(x: f64, y: f64, title: &str) -> String {
    let at = |dx: f64, dy: f64| format!("{} {}", format_number(x + dx), format_number(y + dy));
    let path = format!("M{}L{}M{}L{}", at(-3.0, -3.0), at(3.0, 3.0), at(-3.0, 3.0), at(3.0, -3.0));
    if title.is_empty() {
        return format!("<path d=\"{path}\" class=\"cross\"/>");
    }
    format!("<path d=\"{path}\" class=\"cross\"><title>{}</title></path>", escape(title))
}
