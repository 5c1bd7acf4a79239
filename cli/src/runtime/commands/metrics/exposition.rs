//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write as _};

use indexmap::IndexMap;

/// A metric with its samples.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: Type,
}

impl Family {
    pub(super) const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: Type::Gauge }
    }

    pub(super) const fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: Type::Counter }
    }
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Type {
    Counter,
    Gauge,
}

/// The metrics, in the order in which they came first.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    families: IndexMap<&'static str, (&'static Family, String)>,
}

impl Exposition {
    /// Adds a sample with these labels.
    pub(super) fn add(
        &mut self,
        family: &'static Family,
        labels: &[(&'static str, &str)],
        value: impl Display,
    ) {
        let (_, text) = self.families.entry(family.name).or_insert_with(|| (family, String::new()));
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let _ = writeln!(text, "{}{{{}}} {value}", family.name, labels.join(","));
    }

    /// The text.
    pub(super) fn render(&self) -> String {
        let mut out = String::new();
        for (name, (family, samples)) in &self.families {
            let kind = match family.kind {
                Type::Counter => "counter",
                Type::Gauge => "gauge",
            };
            let _ = write!(out, "# HELP {name} {}\n# TYPE {name} {kind}\n{samples}", family.help);
        }
        out
    }
}

/// The value of a label with backslashes before what ends it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Family = Family { name: "a_total", help: "What it counts.", kind: Type::Counter };
    const B: Family = Family { name: "b", help: "What it is.", kind: Type::Gauge };

    #[test]
    fn the_samples_of_a_metric_are_together() {
        let mut out = Exposition::default();
        out.add(&A, &[("job", "訓練 \"x\"\\\n")], 1);
        out.add(&B, &[("job", "b")], 0.5);
        out.add(&A, &[("job", "c")], 2);
        insta::assert_snapshot!(out.render(), @r#"
        # HELP a_total What it counts.
        # TYPE a_total counter
        a_total{job="訓練 \"x\"\\\n"} 1
        a_total{job="c"} 2
        # HELP b What it is.
        # TYPE b gauge
        b{job="b"} 0.5
        "#);
    }
}
