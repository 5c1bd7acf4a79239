//! Blank commands: the shell does nothing, and the instance succeeds.

use jobc_schema::Pointer;

use crate::diagnostic::{Diagnostic, codes};
use crate::document::{Node, Value};

use super::super::place;
use super::super::report::Report;

/// Checks the commands of a role; `image` is the image of the job, for roles without one.
pub(super) fn role(at: &Pointer, role: &Node, image: Option<&Node>, report: &mut Report<'_>) {
    let blank = |key: &str| role.get(key).filter(|node| is_blank(node));
    if blank("run").is_some() {
        let run = at.key("run");
        let diagnostic = finding(&run, report).note("write the command, such as `run: python train.py`");
        let host = role.get("image").or(image).and_then(Node::as_str) == Some("host");
        // Without `run` the image's own command runs, to which `setup` and `shell` do not apply.
        let alone = role.get("setup").is_none() && role.get("shell").is_none();
        report.push(if alone && !host { diagnostic.remove(&run) } else { diagnostic });
    }
    if blank("setup").is_some() {
        let setup = at.key("setup");
        report.push(finding(&setup, report).note("write what runs before `run`").remove(&setup));
    }
}

/// Checks the commands of an image block.
pub(super) fn image(at: &Pointer, block: &Node, report: &mut Report<'_>) {
    let own = block.get("run").map_or(&[][..], Node::items).iter().enumerate();
    let own = own.map(|(index, node)| (at.key("run").index(index), node));
    let steps = block.get("steps").map_or(&[][..], Node::items).iter().enumerate();
    let steps =
        steps.filter_map(|(index, step)| Some((at.key("steps").index(index).key("run"), step.get("run")?)));
    for (at, _) in own.chain(steps).filter(|(_, node)| is_blank(node)) {
        report.push(finding(&at, report).note("write a command of the build, or remove the entry"));
    }
}

fn finding(at: &Pointer, report: &Report<'_>) -> Diagnostic {
    let is_list = report.document.at(at).is_some_and(|node| matches!(node.value, Value::Sequence(_)));
    let (what, label) = match place::subject(&place::segments(at)) {
        subject if is_list => (format!("the program of {subject}"), "no program has this name"),
        subject => (subject, "it does nothing, and succeeds"),
    };
    Diagnostic::error(codes::EMPTY_VALUE, format!("{what} is blank")).at_place(report.value(at), label)
}

/// Whether a script consists of spaces, or the program of a list does.
fn is_blank(node: &Node) -> bool {
    let text = match &node.value {
        Value::Sequence(_) => node.items().first().and_then(Node::as_str),
        _ => node.as_str(),
    };
    text.is_some_and(|text| text.trim().is_empty())
}
