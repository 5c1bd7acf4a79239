//! The two forms of `matrix` cannot be mixed: axes alone, or `axes` with rules next to it.

use jobc_schema::Pointer;

use crate::diagnostic::{Diagnostic, Safety, codes};
use crate::document::Node;
use crate::suggest;

use super::super::report::Report;
use super::keys::present;

const RULES: &[&str] = &["axes", "include", "exclude", "max_parallel"];

/// Checks `matrix` of the job or of a role.
pub(super) fn check(parent: &Pointer, node: &Node, report: &mut Report<'_>) {
    let Some(matrix) = node.get("matrix") else { return };
    let at = parent.key("matrix");
    let rules = present(matrix, RULES);
    let Some(rule) = rules.first() else { return };
    let stray = matrix.entries().iter().filter(|entry| !RULES.contains(&entry.key.as_str()));
    let mut strays = false;
    for axis in stray {
        strays = true;
        let axis = &axis.key;
        let diagnostic =
            Diagnostic::error(codes::MATRIX_MIXED, format!("the axis `{axis}` is next to `{rule}`"))
                .at_place(report.key(&at.key(axis)), "")
                .at_place(report.key(&at.key(rule)), "this is not an axis")
                .note("with rules, the axes go under `axes`: `matrix: {axes: {lr: [0.1]}, max_parallel: 2}`");
        let near = suggest::nearest(axis, RULES.iter().copied()).filter(|near| matrix.get(near).is_none());
        report.push(match near {
            Some(near) => report.rename(diagnostic, &at.key(axis), near, Safety::Unsafe),
            None => diagnostic,
        });
    }
    if !strays && matrix.get("axes").is_none() {
        report.push(
            Diagnostic::error(codes::MISSING_KEY, "`axes` is missing in `matrix`")
                .at_place(report.key(&at.key(rule)), "")
                .note("write for example `matrix: {axes: {lr: [0.1, 0.01]}, max_parallel: 2}`"),
        );
    }
}
