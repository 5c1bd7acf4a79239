//! A metric over the values of an axis: a point for each job, and a line through the means.

use std::collections::BTreeMap;

use indexmap::IndexSet;
use jobc_job::user_metrics::format_number as format_metric;

use super::chart::{format_number, value_axis};
use super::figure::{Axis, Data, Figure, SMALL, line};
use super::html::{Cell, escape};
use jobc_schema::plural;

/// Maximum number of labeled values of an axis.
const MAX_LABELS: usize = 6;

/// Maximum number of points.
const MAX_POINTS: usize = 2000;

/// Maximum number of rows of the table.
const MAX_ROWS: usize = 50;

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
    let (y, y_ticks) = value_axis(SMALL, lowest, highest);
    #[allow(clippy::cast_precision_loss)] // a number of values
    let (x, middle) = (SMALL.x(0.0, categories.len() as f64), |place: usize| place as f64 + 0.5);
    let title = format!("{metric} by {axis}");
    let step = categories.len().div_ceil(MAX_LABELS);
    let labeled = categories.iter().enumerate().filter(|(place, _)| place % step == 0);
    let x_ticks = labeled.map(|(place, category)| (middle(place), shorten(category))).collect();
    let mut sums = vec![(0.0, 0.0); categories.len()];
    for point in points {
        let (sum, count) = &mut sums[place_of(point)];
        *sum += point.value;
        *count += 1.0;
    }
    let means = sums.iter().enumerate().map(|(place, (sum, count))| (middle(place), sum / count));
    let means: Vec<(f64, f64)> = means.collect();
    let mut marks = line("c0", "mean", std::slice::from_ref(&means), (&x, &y), means.len());
    for point in points.iter().take(MAX_POINTS) {
        let (class, radius) = if point.is_best { ("good", 5) } else { ("runs", 3) };
        marks += &format!(
            "<circle cx=\"{}\" cy=\"{}\" r=\"{radius}\" class=\"{class}\"><title>{}: {}</title></circle>",
            format_number(x.position(middle(place_of(point)))),
            format_number(y.position(point.value)),
            escape(&point.name),
            escape(&format_metric(point.value)),
        );
    }
    let mut legend =
        "<span><i class=\"runs\"></i>a job</span><span><i class=\"line0\"></i>mean</span>".to_owned();
    if points.iter().any(|point| point.is_best) {
        legend += "<span><i class=\"good\"></i>best</span>";
    }
    if y.is_log {
        legend += "<span>logarithmic scale</span>";
    }
    let figure = Figure {
        frame: SMALL,
        title: &title,
        description: &format!("{title} of {}", plural(points.len(), "job")),
        x: Axis { scale: x, ticks: x_ticks, title: axis },
        y: Axis { scale: y, ticks: y_ticks, title: "" },
    };
    let row = |(place, category): (usize, &&str)| {
        let values = || points.iter().filter(|point| place_of(point) == place).map(|point| point.value);
        let of = |value: Option<f64>| Cell::number(&value.map(format_metric).unwrap_or_default());
        vec![
            Cell::text(category),
            Cell::number(&values().count().to_string()),
            of(values().reduce(f64::min)),
            of(means.get(place).map(|mean| mean.1)),
            of(values().reduce(f64::max)),
        ]
    };
    let rows = categories.iter().enumerate().take(MAX_ROWS).map(row).collect();
    figure.draw(&marks, &legend, &Data { headings: &[axis, "Jobs", "Lowest", "Mean", "Highest"], rows })
}

/// A label that fits below its point.
fn shorten(text: &str) -> String {
    crate::table::truncate(text, 12)
}

#[cfg(test)]
mod tests {
    use super::*;

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
