//! Metrics that are lines of a task's output.

use jobc_schema::plan::{JobPlan, MetricSource};
use regex::bytes::Regex;

use jobc_sys::error::{Error, Kind, Result};

/// The metrics that are lines of the output, by role.
#[derive(Debug)]
pub struct LogMetrics {
    roles: Vec<Vec<(String, Regex)>>,
}

impl LogMetrics {
    /// Those of a plan.
    ///
    /// # Errors
    ///
    /// An invalid pattern, which the compiler rejects.
    pub fn of(plan: &JobPlan) -> Result<Self> {
        let mut roles = Vec::with_capacity(plan.roles.len());
        for role in &plan.roles {
            let mut of_role = Vec::new();
            for (name, metric) in &role.metrics {
                let MetricSource::Log(pattern) = &metric.source else { continue };
                let pattern = Regex::new(pattern)
                    .map_err(|error| Error::new(Kind::State, format!("metric `{name}`: {error}")))?;
                of_role.push((name.clone(), pattern));
            }
            roles.push(of_role);
        }
        Ok(Self { roles })
    }

    /// Whether a role has any.
    pub fn has(&self, role: usize) -> bool {
        self.roles.get(role).is_some_and(|of_role| !of_role.is_empty())
    }

    /// The metrics of a role that a line reports.
    pub fn find<'a>(&'a self, role: usize, line: &'a [u8]) -> impl Iterator<Item = (&'a str, f64)> {
        let of_role = self.roles.get(role).into_iter().flatten();
        of_role.filter_map(move |(name, pattern)| Some((name.as_str(), last_number(pattern, line)?)))
    }
}

/// The number in the only group of a pattern: that of the last match in the line, since a progress bar writes its
/// states one after the other. Text that is not a number is skipped.
pub fn last_number(pattern: &Regex, line: &[u8]) -> Option<f64> {
    let matches = pattern.captures_iter(line);
    let numbers = matches.filter_map(|found| {
        let text = std::str::from_utf8(found.get(1)?.as_bytes()).ok()?;
        text.trim().parse().ok()
    });
    numbers.last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_match_of_a_line_counts() {
        let pattern = Regex::new(r"loss[=: ]+([-+0-9.eE]+|nan|inf)").unwrap();
        let find = |line: &str| last_number(&pattern, line.as_bytes());
        assert_eq!(find("epoch 1 loss=0.5\r epoch 2 loss: 2.5e-1"), Some(0.25));
        assert_eq!(find("訓練 loss = -1"), Some(-1.0));
        assert!(find("loss=nan").unwrap().is_nan());
        assert_eq!(find("loss=1.2.3"), None, "not a number");
        assert_eq!(find("accuracy=1"), None);
        assert_eq!(last_number(&pattern, b"\xff loss=1"), Some(1.0));
    }
}
