//! A metric over the values of an axis: a point for each job, and a line through the means.

use std::collections::BTreeMap;

use indexmap::IndexSet;
use jobc_job::user_metrics::format_number as format_metric;

use super::chart::format_number;
use super::html::escape;

const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 40.0;

/// Maximum number of labeled values of an axis.
const MAX_LABELS: usize = 6;

/// Maximum number of points.
const MAX_POINTS: usize = 2000;

/// A job.
pub(super) struct Point {
    /// The value of the axis.
    pub category: String,
    /// The metric, finite.
    pub value: f64,
    /// The job's name.
    pub name: String,
    /// Whether it is the best of the sweep.
    pub is_best: bool,
}

/// The plot; nothing if the axis has fewer than two values.
pub(super) fn plot(metric: &str, axis: &str, points: &[Point]) -> String {
    let categories: IndexSet<&str> = points.iter().map(|point| point.category.as_str()).collect();
    let mut categories: Vec<&str> = categories.into_iter().collect();
    if categories.len() < 2 {
        return String::new();
    }
    // Numbers in their order, whatever that of the job file.
    if let Some(numbers) = categories.iter().map(|text| text.parse().ok()).collect::<Option<Vec<f64>>>() {
        let mut sorted: Vec<(f64, &str)> = numbers.into_iter().zip(categories).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        categories = sorted.into_iter().map(|(_, text)| text).collect();
    }
    let places: BTreeMap<&str, usize> =
        categories.iter().enumerate().map(|(place, text)| (*text, place)).collect();
    let place_of = |point: &Point| places.get(point.category.as_str()).copied().unwrap_or_default();
    let lowest = points.iter().map(|point| point.value).fold(f64::INFINITY, f64::min);
    let highest = points.iter().map(|point| point.value).fold(f64::NEG_INFINITY, f64::max);
    let ticks = ticks(lowest, highest);
    let (from, to) = (ticks[0].min(lowest), ticks[ticks.len() - 1].max(highest));
    let y = |value: f64| {
        let part = if to > from { (value - from) / (to - from) } else { 0.5 };
        HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP)
    };
    #[allow(clippy::cast_precision_loss)] // a number of values
    let x = |place: usize| LEFT + (place as f64 + 0.5) / categories.len() as f64 * (WIDTH - LEFT - RIGHT);
    let title = format!("{metric} by {axis}");
    let mut out = format!(
        "<figure><figcaption>{0}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{0}\">",
        escape(&title)
    );
    for tick in &ticks {
        let at = format_number(y(*tick));
        out += &format!(
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at}\" y2=\"{at}\" class=\"grid\"/><text x=\"{}\" y=\"{}\" class=\"tick end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 5.0,
            format_number(y(*tick) + 4.0),
            escape(&format_metric(*tick)),
        );
    }
    let step = categories.len().div_ceil(MAX_LABELS);
    for (place, category) in categories.iter().enumerate().filter(|(place, _)| place % step == 0) {
        out += &format!(
            "<text x=\"{}\" y=\"{}\" class=\"tick mid\">{}</text>",
            format_number(x(place)),
            HEIGHT - BOTTOM + 16.0,
            escape(&shorten(category)),
        );
    }
    out += &format!(
        "<text x=\"{}\" y=\"{}\" class=\"tick mid\">{}</text>",
        format_number(LEFT.midpoint(WIDTH - RIGHT)),
        HEIGHT - 6.0,
        escape(axis),
    );
    let mut sums = vec![(0.0, 0.0); categories.len()];
    for point in points {
        let (sum, count) = &mut sums[place_of(point)];
        *sum += point.value;
        *count += 1.0;
    }
    let mut line = String::new();
    for (place, (sum, count)) in sums.into_iter().enumerate() {
        line += &format!("{},{} ", format_number(x(place)), format_number(y(sum / count)));
    }
    out += &format!("<g class=\"line c0\"><title>mean</title><polyline points=\"{}\"/></g>", line.trim_end());
    for point in points.iter().take(MAX_POINTS) {
        let place = place_of(point);
        let (class, radius) = if point.is_best { ("good", 5) } else { ("runs", 3) };
        out += &format!(
            "<circle cx=\"{}\" cy=\"{}\" r=\"{radius}\" class=\"{class}\"><title>{}: {}</title></circle>",
            format_number(x(place)),
            format_number(y(point.value)),
            escape(&point.name),
            escape(&format_metric(point.value)),
        );
    }
    let mut legend =
        "<span><i class=\"runs\"></i>a job</span><span><i class=\"line0\"></i>mean</span>".to_owned();
    if points.iter().any(|point| point.is_best) {
        legend += "<span><i class=\"good\"></i>best</span>";
    }
    format!("{out}</svg>\n<p class=\"legend\">{legend}</p></figure>\n")
}

/// Round numbers from the last below the lowest value to the first above the highest.
fn ticks(lowest: f64, highest: f64) -> Vec<f64> {
    let distance = highest - lowest;
    if distance <= 0.0 || !distance.is_finite() {
        return vec![lowest];
    }
    let least = distance / 4.0;
    let unit = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * unit).into_iter().find(|step| *step >= least);
    let step = step.unwrap_or(unit * 10.0);
    let first = (lowest / step).floor();
    let mut ticks = vec![];
    let mut number = 0.0;
    while ticks.len() < 8 {
        let value = (first + number) * step;
        ticks.push(value);
        if value >= highest {
            break;
        }
        number += 1.0;
    }
    ticks
}

/// A label that fits below its point.
fn shorten(text: &str) -> String {
    crate::table::truncate(text, 12)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_enclose_the_values() {
        assert_eq!(ticks(0.013, 0.042), [0.01, 0.02, 0.03, 0.04, 0.05]);
        assert_eq!(ticks(-3.0, 9.0), [-5.0, 0.0, 5.0, 10.0]);
        assert_eq!(ticks(7.0, 7.0), [7.0]);
        assert_eq!(ticks(0.0, 4e300).len(), 5);
    }

    #[test]
    fn values_of_an_axis_are_in_the_order_of_numbers() {
        let point = |category: &str, value: f64| Point {
            category: category.to_owned(),
            value,
            name: "tune-0.1".to_owned(),
            is_best: value < 1.0,
        };
        let drawn = plot("loss", "lr", &[point("1", 3.0), point("0.1", 0.5), point("1e-2", 2.0)]);
        let places = ["1e-2</text>", ">0.1</text>", ">1</text>"].map(|text| drawn.rfind(text).unwrap());
        assert!(places.is_sorted(), "{drawn}");
        assert_eq!(drawn.matches("<circle").count(), 3);
        assert_eq!(drawn.matches("class=\"good\"><title>").count(), 1);
        assert_eq!(plot("loss", "lr", &[point("1", 3.0), point("1", 2.0)]), "");
    }
}
