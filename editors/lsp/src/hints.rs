//! Inlay hints and code lenses: totals after a role's name, and commands above a job.

use jobc_compiler::document::Node;
use lsp_types::{CodeLens, Command, InlayHint, Label, Range, Uri};
use serde_json::json;

use crate::amounts;
use crate::session::{Good, Job};

/// The totals of each role in the last valid plan, at the end of the line with its name.
pub(crate) fn inlay(job: &Job, range: Range) -> Vec<InlayHint> {
    let (Some(good), Some(plan)) = (&job.good, job.plans().first()) else { return vec![] };
    let roles = good.document.root.get("roles").map(Node::entries).unwrap_or_default();
    let hint = |entry: &jobc_compiler::document::Entry| {
        let role = plan.role(&entry.key)?;
        let line = good.text.line(good.text.line_of(entry.key_span.start as usize));
        let position = good.text.position(line.end);
        let wanted = range.start.line <= position.line && position.line <= range.end.line;
        let hint = InlayHint::new(
            position,
            Label::String(amounts::hint(role)?),
            None,
            None,
            Some(lsp_types::Tooltip::String(amounts::of_role(role))),
            Some(true),
            None,
            None,
        );
        wanted.then_some(hint)
    };
    roles.iter().filter_map(hint).collect()
}

/// Build, Run and Show plan, above the first key of a job. The client runs them.
pub(crate) fn lenses(good: &Good, uri: &Uri) -> Vec<CodeLens> {
    let Some(first) = good.document.root.entries().first() else { return vec![] };
    let at = good.text.position(first.key_span.start as usize);
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
