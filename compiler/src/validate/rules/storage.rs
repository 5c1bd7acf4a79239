//! `data` and `outputs` share one namespace: expressions, targets and roles refer to both by name.

use jobc_schema::Pointer;

use crate::diagnostic::{Diagnostic, codes};
use crate::document::Node;

use super::super::report::Report;
use super::keys::below;

/// Reports outputs with the name of a data entry.
pub(super) fn names(root: &Node, report: &mut Report<'_>) {
    for (at, entry) in below(root, &Pointer::ROOT, "outputs") {
        let name = &entry.key;
        let data = Pointer::ROOT.keys(["data", name]);
        if root.get("data").is_some_and(|data| data.get(name).is_some()) {
            report.push(
                Diagnostic::error(codes::SHARED_NAME, format!("`{name}` is the name of data and of outputs"))
                    .at_place(report.key(&at), "")
                    .at_place(report.key(&data), "the data")
                    .note("targets and roles refer to both by name; rename one of them, or use one entry of `data` with `writable: true`"),
            );
        }
    }
}
