//! The groups of pods of an object.

use crate::document::{Entry, Node, Value};

use super::super::draft::Draft;
use super::super::keyed::only;
use super::super::values::{scalar, text_in};
use super::context::role_name;
use super::facts::Facts;
use super::group::Group;
use super::kinds::{Kind, Name, PodGroups};
use super::layout;
use super::metadata::{self, Of};
use super::rows::{Fields, To};
use super::settings::Settings;

/// The paths of an object that hold groups of pods.
pub(super) fn elsewhere(place: &PodGroups) -> Vec<String> {
    let join = |at: &str, path: &str| match (at, path) {
        ("", path) => path.to_owned(),
        (at, "") => at.to_owned(),
        (at, path) => format!("{at}.{path}"),
    };
    let head = place.at.trim_end_matches(".*").trim_end_matches("[]");
    if head != place.at || !place.fields.is_empty() {
        return vec![head.to_owned()];
    }
    if place.at.is_empty() {
        return vec!["spec".to_owned()];
    }
    let metadata = place.metadata.iter().map(|path| join(place.at, path));
    std::iter::once(join(place.at, place.template)).chain(metadata).collect()
}

/// The groups of pods of an object, with what their own fields say.
pub(super) fn groups(kind: &'static Kind, object: &Node, draft: &mut Draft<'_>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for place in kind.places {
        let head = place.at.trim_end_matches(".*").trim_end_matches("[]");
        let steps = head.split('.').filter(|step| !step.is_empty());
        let Some(found) = steps.clone().try_fold(object, |node, key| node.get(key)) else { continue };
        let nodes: Vec<(Option<&Entry>, &Node)> = match (&found.value, place.at.len() - head.len()) {
            (Value::Mapping(entries), 2) if place.at.ends_with(".*") => {
                entries.iter().map(|entry| (Some(entry), &entry.value)).collect()
            }
            (Value::Sequence(items), 2) => items.iter().map(|item| (None, item)).collect(),
            _ => vec![(None, found)],
        };
        for (entry, node) in nodes {
            groups.extend(group(kind, place, entry, node, &groups, draft));
        }
    }
    if kind.name != "LeaderWorkerSet" {
        // The parts of a framework have an order, whatever that of the file is.
        let order = |group: &Group| {
            kind.parts.iter().position(|(source, ..)| *source == group.source).unwrap_or(usize::MAX)
        };
        groups.sort_by_key(order);
    }
    if groups.is_empty() {
        let at = object.get("kind").map_or(object.span, |kind| kind.span);
        draft.invalid(at, format!("the {} has no pods", kind.title()), "");
    }
    groups
}

fn group(
    kind: &'static Kind,
    place: &'static PodGroups,
    entry: Option<&Entry>,
    node: &Node,
    known: &[Group],
    draft: &mut Draft<'_>,
) -> Option<Group> {
    let named = match place.name {
        Name::Field(key) => node.get(key),
        _ => None,
    };
    let source = match (place.name, entry) {
        (Name::Key, Some(entry)) => entry.key.clone(),
        (Name::Fixed(name), _) => ours(node, place).unwrap_or(name.to_owned()),
        _ => named.and_then(scalar).unwrap_or("main".to_owned()),
    };
    let at = entry.map(|entry| entry.key_span).or(named.map(|node| node.span));
    let template = place.template.split('.').filter(|step| !step.is_empty());
    let template = template.clone().try_fold(node, |node, key| node.get(key));
    let Some(template) = template else {
        draft.invalid(
            at.unwrap_or(node.span),
            format!("the pods of `{source}` have no `{}`", place.template),
            "",
        );
        return None;
    };
    if !place.at.is_empty() {
        only(template, &["metadata", "spec"], "a pod template", draft);
    }
    let at = at.unwrap_or_else(|| node.entries().first().map_or(node.span, |entry| entry.key_span));
    let wanted = role_name(kind, &source).unwrap_or("main".to_owned());
    let Some(role) = layout::free_name(&wanted, known) else {
        draft.invalid(
            at,
            format!("two groups of pods get the name `{wanted}`"),
            "give one of them another name",
        );
        draft.note(node.span, "its name is reported");
        return None;
    };
    let mut facts = Facts::default();
    if !place.fields.is_empty() {
        let inner = [place.template].into_iter().chain(place.metadata.iter().copied()).collect::<Vec<_>>();
        let reader = Fields { of: &format!("the group `{source}`"), tables: place.fields, elsewhere: &inner };
        reader.read(node, draft, &mut |draft, row, entry| match row.to {
            To::Fact(fact) => facts.put(fact, entry),
            _ => draft.account.field(entry.key_span, format!("roles.{role}")),
        });
        for path in place.metadata {
            if let Some(metadata) = path.split('.').try_fold(node, |node, key| node.get(key)) {
                let mut aside = Settings::default();
                metadata::read(metadata, Of::Pods(&role), &mut aside, draft);
                aside.finish(&[], draft);
            }
        }
    }
    Some(Group { at, source, pods: role.clone(), role, template: template.clone(), facts, instances: 1 })
}

/// The role that jobc wrote a pod for.
fn ours(node: &Node, place: &PodGroups) -> Option<String> {
    let template = place.template.split('.').filter(|step| !step.is_empty());
    let template = template.clone().try_fold(node, |node, key| node.get(key))?;
    text_in(template, &["metadata", "labels", "jobc.dev/role"])
}
