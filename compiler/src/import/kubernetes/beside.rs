//! Containers beside the program in its pods: each becomes a role, which the program's role needs if it starts before it.

use std::collections::BTreeSet;

use crate::document::Node;

use super::super::draft::Draft;
use super::super::nodes::{map, number, string};
use super::super::values::text_at;
use super::containers::{Handed, is_sidecar, items, mounted, program, with};
use super::context::role_name;
use super::facts::Facts;
use super::group::Group;
use super::kinds::{Kind, Stands};
use super::layout::{free_name, running};

/// How many containers beside a program are read.
const MAX_BESIDE: usize = 32;

fn all(spec: &Node) -> Vec<(&Node, bool)> {
    let sidecars = items(spec, "initContainers").iter().filter(|item| is_sidecar(item));
    let program = program(spec).map(|program| program.span);
    let others = items(spec, "containers").iter().filter(|item| Some(item.span) != program);
    sidecars.map(|item| (item, true)).chain(others.map(|item| (item, false))).collect()
}

/// Whether the pods of a group have such containers.
pub(super) fn has_role(group: &Group) -> bool {
    group.spec().is_some_and(|spec| !all(spec).is_empty())
}

/// Takes these containers out of the pods, and adds the volumes that they share with others; returns the roles of those that
/// start before the program, and end with it, too.
pub(super) fn take(
    kind: &'static Kind,
    groups: &mut [Group],
    handed: &mut Handed,
    draft: &mut Draft<'_>,
) -> (Vec<Group>, BTreeSet<String>) {
    let (mut found, mut sidecars): (Vec<Group>, BTreeSet<String>) = Default::default();
    for at in 0..groups.len() {
        let group = &groups[at];
        let Some(spec) = group.spec().cloned() else { continue };
        let own = all(&spec);
        if own.is_empty() {
            continue;
        }
        if let Some((item, _)) = own.get(MAX_BESIDE) {
            let message = format!("a pod of {} containers", own.len() + 1);
            draft.refuse(item.span, message, "write a role for each program");
            continue;
        }
        let is_own = |item: &&Node| own.iter().any(|(other, _)| other.span == item.span);
        let rest = |key: &str| -> Vec<Node> {
            items(&spec, key).iter().filter(|item| !is_own(item)).cloned().collect()
        };
        let (before, programs) = (rest("initContainers"), rest("containers"));
        let by_rest: Vec<String> = before.iter().chain(&programs).flat_map(mounted).collect();
        for (item, is_sidecar) in &own {
            let by_others = own.iter().filter(|(other, _)| other.span != item.span);
            let by_others: Vec<String> = by_others.flat_map(|(other, _)| mounted(other)).collect();
            let volumes = mounted(item);
            let is_shared = |name: &&String| by_rest.contains(name) || by_others.contains(name);
            let shared: Vec<&String> = volumes.iter().filter(is_shared).collect();
            handed.extend(shared.iter().map(|name| (group.pods.clone(), (*name).clone())));
            let source = text_at(item, "name").unwrap_or("sidecar".to_owned());
            let title = item.get("name").map_or(item.span, |name| name.span);
            let role = name(kind, &source, group, groups, &found);
            report(title, &source, &role, group, &shared, draft);
            let template = with(&group.template, &spec, &[], std::slice::from_ref(*item), &|name| {
                volumes.contains(name)
            });
            let (pods, facts, instances) = (group.pods.clone(), Facts::default(), group.instances);
            let group = Group { at: title, source, role, pods, template, facts, instances };
            // Its place is behind the programs.
            draft.set(&["roles", &group.role], title, map(title, vec![]));
            if instances > 1 {
                let path = ["roles", group.role.as_str(), "instances"];
                draft.set(&path, title, number(title, instances));
            }
            if *is_sidecar {
                sidecars.insert(group.role.clone());
            }
            found.push(group);
        }
        let by_own: Vec<String> = own.iter().flat_map(|(item, _)| mounted(item)).collect();
        let is_kept = |name: &String| by_rest.contains(name) || !by_own.contains(name);
        groups[at].template = with(&group.template, &spec, &before, &programs, &is_kept);
    }
    (found, sidecars)
}

/// The name of the role: that of the container, with that of its program where another has it.
fn name(kind: &Kind, source: &str, group: &Group, groups: &[Group], found: &[Group]) -> String {
    let taken: Vec<Group> = groups.iter().chain(found).cloned().collect();
    let wanted = role_name(kind, source).unwrap_or("sidecar".to_owned());
    let long = format!("{}-{wanted}", group.role);
    let numbered = (2..).map(|number| format!("{long}-{number}"));
    let mut names = [wanted.clone(), long.clone()].into_iter().chain(numbered);
    names.find_map(|name| free_name(&name, &taken)).unwrap_or(wanted)
}

fn report(
    title: crate::source::Span,
    source: &str,
    role: &str,
    group: &Group,
    shared: &[&String],
    draft: &mut Draft<'_>,
) {
    let host = if role.contains('-') { format!("hosts['{role}'][0]") } else { format!("hosts.{role}[0]") };
    draft.changed(
        title,
        format!("`{source}` runs as a role beside `{}`, not in its pods", group.role),
        format!("`localhost` is another host for each of them; this one is `${{{{ {host} }}}}`"),
    );
    if let Some(volume) = shared.first().filter(|_| group.instances > 1) {
        draft.changed(
            title,
            format!("all instances of `{}` and `{role}` share the directory `{volume}`", group.role),
            "where they write the same files, add a directory of each to their paths: `$JOBC_INDEX`",
        );
    }
}

/// Writes what starts before the programs, and that these end the job.
pub(super) fn write(
    kind: &Kind,
    (all, sidecars): (&[Group], &BTreeSet<String>),
    groups: &[Group],
    draft: &mut Draft<'_>,
) {
    let is_sidecar = |group: &&Group| sidecars.contains(&group.role);
    for group in all.iter().filter(is_sidecar) {
        let state = running(&group.role, draft);
        draft.set(&["roles", &group.pods, "needs", &group.role], group.at, string(group.at, state));
        let path = ["roles", group.role.as_str(), "retry", "max"];
        draft.set(&path, group.at, string(group.at, "unlimited"));
    }
    let runs_on = |group: &&Group| is_sidecar(group) || kind.framework == Stands::Ordered("ray");
    let first =
        groups.iter().find(|group| all.iter().filter(runs_on).any(|beside| beside.pods == group.role));
    let Some(first) = first.filter(|_| kind.groups != ["apps"]) else { return };
    let has_end = groups.iter().any(|group| draft.get(&["roles", &group.role, "completion"]).is_some());
    if has_end {
        return;
    }
    let path = ["roles", first.role.as_str(), "completion", "min_succeeded"];
    draft.set(&path, first.at, string(first.at, "all"));
    if groups.len() > 1 && kind.framework == Stands::None {
        draft.changed(
            first.at,
            format!("the job ends when `{}` has succeeded: the containers beside it run on", first.role),
            "write `completion: {min_succeeded: all}` of the role that ends it",
        );
    }
}
