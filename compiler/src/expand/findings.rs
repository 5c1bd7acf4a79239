//! Merges findings about the combinations of a role: one for all combinations that have it, in the job file's terms.

use std::collections::BTreeMap;

use super::groups::Groups;
use crate::diagnostic::{Diagnostic, Location, Sink};
use crate::suggest;

/// Findings that differ only in the combination that they are about.
struct Class {
    /// The finding, with the combination's name.
    own: Diagnostic,
    /// The finding, with the role's name.
    common: Diagnostic,
    /// The combinations that have the finding, in order.
    groups: Vec<String>,
}

/// Merges findings that several combinations of a role have. A finding of only one combination keeps its name.
pub(crate) fn merge_findings(groups: &Groups, sink: &mut Sink) {
    if groups.is_empty() {
        return;
    }
    let mut classes: Vec<Class> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for own in std::mem::take(sink).into_diagnostics() {
        let mut common = own.clone();
        let Some(group) = use_role_names(groups, &mut common) else {
            classes.push(Class { own, common, groups: vec![] });
            continue;
        };
        let key = format!("{:?}", (&common.code, &common.message, &common.labels, &common.notes));
        let place = *known.entry(key).or_insert(classes.len());
        match classes.get_mut(place) {
            Some(class) if class.groups.contains(&group) => {}
            Some(class) => class.groups.push(group),
            None => classes.push(Class { own, common, groups: vec![group] }),
        }
    }
    for Class { own, mut common, groups: having } in classes {
        if having.len() < 2 {
            sink.push(own);
            continue;
        }
        let role = groups.declared(&having[0]);
        if groups.of_role(role).is_some_and(|all| all.len() > having.len()) {
            common = common
                .note(format!("in the combinations {}", suggest::list(having.iter().map(String::as_str))));
        }
        sink.push(common);
    }
}

/// Replaces names of combinations with those of their roles; returns the first combination that was named.
fn use_role_names(groups: &Groups, diagnostic: &mut Diagnostic) -> Option<String> {
    let mut first = None;
    let texts = diagnostic.labels.iter_mut().map(|label| &mut label.text);
    for text in std::iter::once(&mut diagnostic.message).chain(texts).chain(&mut diagnostic.notes) {
        let mut parts: Vec<&str> = text.split('`').collect();
        for part in parts.iter_mut().skip(1).step_by(2) {
            if let Some(group) = groups.get(part) {
                first.get_or_insert_with(|| (*part).to_owned());
                *part = &group.role;
            }
        }
        *text = parts.join("`");
    }
    for label in &mut diagnostic.labels {
        let (Location::Path { pointer, .. } | Location::Inside { pointer, .. }) = &mut label.place else {
            continue;
        };
        let segments: Vec<String> = pointer.segments().collect();
        if let [roles, name, rest @ ..] = &segments[..]
            && roles == "roles"
            && let Some(group) = groups.get(name)
        {
            first.get_or_insert_with(|| name.clone());
            let role = [roles.as_str(), group.role.as_str()].into_iter();
            *pointer = jobc_schema::Pointer::ROOT.keys(role.chain(rest.iter().map(String::as_str)));
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use jobc_schema::Pointer;

    use super::*;
    use crate::diagnostic::{DocumentId, codes};
    use crate::expand::with_groups;
    use crate::parse::parse;
    use crate::source::{Source, Sources};

    #[test]
    fn a_finding_of_all_combinations_is_reported_once_for_the_role() {
        let mut sources = Sources::new();
        let text = "roles:\n  train: {matrix: {lr: [1, 2, 3]}, run: x}\n  other: {run: y}\n";
        let id = sources.add(Source::new("job.yaml", text));
        let document = parse(&sources, id, &mut Sink::new()).unwrap();
        let (document, groups) = with_groups(document);
        let mut sink = Sink::new();
        let about = |role: &str, what: &str| {
            let at = Pointer::ROOT.keys(["roles", role, "run"]);
            Diagnostic::warning(codes::LITTLE_MEMORY, format!("`{role}` {what}")).at(&at, "")
        };
        for role in ["train-m0", "train-m1", "train-m2", "other"] {
            sink.push(about(role, "is small"));
        }
        sink.push(about("train-m0", "is large"));
        sink.push(about("train-m2", "is large"));
        sink.push(about("train-m1", "is 7"));
        merge_findings(&groups, &mut sink);
        sink.locate(DocumentId::Job, &document, &sources);
        let found: Vec<String> = sink
            .finish()
            .iter()
            .map(|d| {
                format!("{}: {} {:?}", sources.slice(d.labels[0].place.span().unwrap()), d.message, d.notes)
            })
            .collect();
        assert_eq!(
            found,
            [
                "x: `train` is small []",
                "x: `train` is large [\"in the combinations `train-m0` and `train-m2`\"]",
                "x: `train-m1` is 7 []",
                "y: `other` is small []",
            ]
        );
    }
}
