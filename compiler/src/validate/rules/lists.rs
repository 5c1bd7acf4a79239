//! Lists with duplicate items.

use std::collections::BTreeMap;

use jobc_schema::Pointer;

use crate::diagnostic::{Diagnostic, codes};
use crate::document::Node;

use super::super::place;
use super::super::report::{Report, source_text};

/// The lists of a job.
pub(super) fn job(root: &Node, report: &mut Report<'_>) {
    for path in [
        &["compat"][..],
        &["distributed", "roles"],
        &["retry", "on_exit_codes"],
        &["retry", "never_on_exit_codes"],
        &["retry", "on"],
        &["preflight"],
        &["preemption", "exit_codes"],
        &["stall", "signs"],
        &["image", "secrets"],
    ] {
        twice(&Pointer::ROOT, root, path, report);
    }
}

/// The lists of a role.
pub(super) fn role(at: &Pointer, role: &Node, report: &mut Report<'_>) {
    let paths: [&[&str]; 12] = [
        &["needs"],
        &["data"],
        &["outputs"],
        &["retry", "on_exit_codes"],
        &["retry", "never_on_exit_codes"],
        &["retry", "on"],
        &["preflight"],
        &["stall", "signs"],
        &["resources", "gpu", "capabilities"],
        &["resources", "gpu", "model"],
        &["security", "capabilities", "add"],
        &["security", "capabilities", "drop"],
    ];
    for path in paths {
        twice(at, role, path, report);
    }
}

/// Reports each item of a list that repeats an earlier one.
pub(super) fn twice(at: &Pointer, node: &Node, path: &[&str], report: &mut Report<'_>) {
    let Some(list) = path.iter().try_fold(node, |node, key| node.get(key)) else { return };
    let at = at.keys(path.iter().copied());
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, item) in list.items().iter().enumerate() {
        if item.items().is_empty() && item.entries().is_empty() {
            let text = source_text(item);
            if let Some(first) = seen.get(&text) {
                let list = place::subject(&place::segments(&at));
                report.push(
                    Diagnostic::error(codes::DUPLICATE_ITEM, format!("duplicate `{text}` in {list}"))
                        .at_place(report.value(&at.index(index)), "")
                        .at_place(report.value(&at.index(*first)), "first here"),
                );
            } else {
                seen.insert(text, index);
            }
        }
    }
}
