//! Inlay hints and code lenses: totals after a role's name, and commands above a job.

use std::collections::BTreeMap;

use jobc_compiler::document::Node;
use jobc_schema::plan::RolePlan;
use lsp_types::{CodeLens, Command, InlayHint, Label, Range, Uri};
use serde_json::json;

use crate::amounts;
use crate::session::Job;
use crate::tree::Tree;

/// The totals of each role in the last valid plan, at the end of the line with its name.
pub(crate) fn inlay(job: &Job, range: Range) -> Vec<InlayHint> {
    let (Some(tree), Some(plan)) = (&job.tree, job.plans().first()) else { return vec![] };
    let roles = tree.document.root.get("roles").map(Node::entries).unwrap_or_default();
    // For a role with a matrix, the first combination.
    let by_name: BTreeMap<&str, &RolePlan> =
        plan.roles.iter().rev().map(|role| (role.declared(), role)).collect();
    let hint = |entry: &jobc_compiler::document::Entry| {
        let number = tree.text.line_of(entry.key_span.start as usize);
        if !(range.start.line as usize..=range.end.line as usize).contains(&number) {
            return None;
        }
        let role = by_name.get(entry.key.as_str())?;
        Some(InlayHint::new(
            tree.text.position(tree.text.line(number).end),
            Label::String(amounts::hint(role)?),
            None,
            None,
            Some(lsp_types::Tooltip::String(amounts::of_role(role))),
            Some(true),
            None,
            None,
        ))
    };
    roles.iter().filter_map(hint).collect()
}

/// Build, Run and Show plan, above the first key of a job. The client executes them.
pub(crate) fn lenses(tree: &Tree, uri: &Uri) -> Vec<CodeLens> {
    let Some(first) = tree.document.root.entries().first() else { return vec![] };
    let at = tree.text.position(first.key_span.start as usize);
    let lens = |(title, command): (&str, &str)| CodeLens {
        range: Range { start: at, end: at },
        command: Some(Command {
            title: title.to_owned(),
            tooltip: None,
            command: command.to_owned(),
            arguments: Some(vec![json!(uri)]),
        }),
        data: None,
    };
    [("Build", "jobc.build"), ("Run", "jobc.run"), ("Show plan", "jobc.showPlan")].map(lens).to_vec()
}
