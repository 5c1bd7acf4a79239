//! The matrix of a role: each combination becomes a separate role, a *group* of tasks.
//!
//! The expansion is done in the document, so that later passes see only roles. `train` with three combinations
//! becomes `train-m0`, `train-m1` and `train-m2`; a `needs: train` of another role means all of them in `resolve`.
//! The groups' nodes have the spans of the role, so findings point at the user's text.

use std::collections::BTreeSet;
use std::sync::Arc;

use indexmap::IndexMap;
use jobc_schema::Scalar;

use super::matrix::{self, MAX_COMBINATIONS, Matrix};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Document, Entry, Node, Value};
use crate::expression::has_expression;

/// The maximum length of a role's name.
const MAX_ROLE_NAME_CHARS: usize = 32;

/// A group of tasks: one combination of a role's matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The role in the job file.
    pub role: String,
    /// The number of the combination.
    pub number: u32,
    /// The values of the combination, by axis.
    pub values: Arc<IndexMap<String, Scalar>>,
    /// How many groups of the role may run at once.
    pub max_parallel: Option<u32>,
}

/// The groups of a job, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Groups {
    groups: IndexMap<String, Group>,
    /// The names of the groups of each role with a matrix.
    by_role: IndexMap<String, Vec<String>>,
}

impl Groups {
    /// The group that a role is, if it was expanded from a matrix.
    pub fn get(&self, role: &str) -> Option<&Group> {
        self.groups.get(role)
    }

    /// The names of the groups of a role of the job file; `None` if it has no matrix.
    pub fn of_role(&self, role: &str) -> Option<&[String]> {
        self.by_role.get(role).map(Vec::as_slice)
    }

    /// The roles with a matrix.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.by_role.keys().map(String::as_str)
    }

    /// The name in the job file of a role.
    pub fn declared<'a>(&'a self, role: &'a str) -> &'a str {
        self.groups.get(role).map_or(role, |group| &group.role)
    }

    /// Whether no role has a matrix.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The name of each group with its role.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Group)> {
        self.groups.iter().map(|(name, group)| (name.as_str(), group))
    }
}

/// Replaces each role that has a matrix with its groups. `jobs` is the number of jobs that the job's own matrix makes.
pub(super) fn expand_groups(
    document: &Document,
    job: Option<&Matrix>,
    sink: &mut Sink,
) -> (Document, Groups) {
    let mut groups = Groups::default();
    let Some(Value::Mapping(roles)) = document.root.get("roles").map(|roles| &roles.value) else {
        return (document.clone(), groups);
    };
    if !roles.iter().any(|role| role.value.get("matrix").is_some()) {
        return (document.clone(), groups);
    }
    let names: BTreeSet<&str> = roles.iter().map(|role| role.key.as_str()).collect();
    let mut expanded = Vec::with_capacity(roles.len());
    for role in roles {
        let Some(matrix) = matrix::read(&role.value, sink) else {
            expanded.push(role.clone());
            continue;
        };
        check(role, &matrix, job, &names, sink);
        let without = without_matrix(role);
        let mut of_role = Vec::with_capacity(matrix.combinations.len());
        for (number, values) in (0_u32..).zip(&matrix.combinations) {
            let name = match group_name(&role.key, number) {
                name if name.chars().count() > MAX_ROLE_NAME_CHARS => short_name(&role.key, number),
                name => name,
            };
            let group = Group {
                role: role.key.clone(),
                number,
                values: Arc::new(values.clone()),
                max_parallel: matrix.max_parallel,
            };
            // A role of that name has been reported.
            if !names.contains(name.as_str()) {
                expanded.push(Entry { key: name.clone(), ..without.clone() });
                groups.groups.insert(name.clone(), group);
                of_role.push(name);
            }
        }
        groups.by_role.insert(role.key.clone(), of_role);
    }
    let jobs = job.map_or(1, |job| job.combinations.len());
    if jobs.saturating_mul(groups.groups.len()) > MAX_COMBINATIONS {
        report_size(roles, jobs, groups.groups.len(), sink);
    }
    let mut document = document.clone();
    if let Some(node) = child(&mut document.root, "roles") {
        node.value = Value::Mapping(expanded);
    }
    (document, groups)
}

/// The document with the groups next to the roles that they were expanded from, so that later passes find both.
pub(crate) fn with_groups(mut document: Document) -> (Document, Groups) {
    let (expanded, groups) = expand_groups(&document, None, &mut Sink::new());
    if groups.is_empty() {
        return (document, groups);
    }
    let Some(Value::Mapping(roles)) = child(&mut document.root, "roles").map(|roles| &mut roles.value) else {
        return (document, groups);
    };
    let added = expanded.root.get("roles").map_or(&[][..], Node::entries);
    roles.extend(added.iter().filter(|role| groups.get(&role.key).is_some()).cloned());
    for role in roles {
        let Some(Value::Mapping(needs)) = child(&mut role.value, "needs").map(|needs| &mut needs.value)
        else {
            continue;
        };
        let of_role = |need: &Entry| groups.of_role(&need.key).unwrap_or_default();
        let entry = |need: &Entry, name: &String| Entry { key: name.clone(), ..need.clone() };
        let named: Vec<Entry> =
            needs.iter().flat_map(|need| of_role(need).iter().map(move |name| entry(need, name))).collect();
        needs.extend(named);
    }
    (document, groups)
}

/// The name of a group of tasks.
fn group_name(role: &str, number: u32) -> String {
    format!("{role}-m{number}")
}

/// A name for a group whose own is too long, which was already reported.
fn short_name(role: &str, number: u32) -> String {
    let letters = MAX_ROLE_NAME_CHARS - group_name("", number).len();
    group_name(role.chars().take(letters).collect::<String>().trim_end_matches('-'), number)
}

fn without_matrix(role: &Entry) -> Entry {
    let mut role = role.clone();
    if let Value::Mapping(entries) = &mut role.value.value {
        entries.retain(|entry| entry.key != "matrix");
    }
    role
}

/// Reports a matrix that conflicts with its role or its job.
fn check(role: &Entry, matrix: &Matrix, job: Option<&Matrix>, names: &BTreeSet<&str>, sink: &mut Sink) {
    let name = &role.key;
    let last = u32::try_from(matrix.combinations.len().saturating_sub(1)).unwrap_or(u32::MAX);
    let longest = group_name(name, last);
    // The role's own name was already checked.
    if longest.chars().count() > MAX_ROLE_NAME_CHARS {
        sink.push(
            Diagnostic::error(
                codes::MATRIX_ROLE,
                format!("the combinations of `{name}` get names that are too long"),
            )
            .at_span(role.key_span, format!("as in `{longest}`"))
            .note(format!(
                "the name of a role has at most {MAX_ROLE_NAME_CHARS} characters; give the role a shorter name"
            )),
        );
    }
    if let Some(taken) =
        (0..=last).map(|number| group_name(name, number)).find(|n| names.contains(n.as_str()))
    {
        sink.push(
            Diagnostic::error(
                codes::MATRIX_ROLE,
                format!("`{taken}` is a combination of `{name}`, and another role"),
            )
            .at_span(role.key_span, "this role has a matrix")
            .note("the combinations of a role are named `ROLE-m0`, `ROLE-m1`, …; rename the other role"),
        );
    }
    let node = role.value.get("matrix");
    let axes = node.and_then(|node| node.get("axes").filter(|axes| is_map(axes))).or(node);
    for axis in axes.map_or(&[][..], Node::entries) {
        let of_job =
            job.and_then(|job| job.combinations.first()).is_some_and(|first| first.contains_key(&axis.key));
        if of_job {
            sink.push(
                Diagnostic::error(
                    codes::MATRIX_ROLE,
                    format!("the axis `{}` is also an axis of the job", axis.key),
                )
                .at_span(axis.key_span, "")
                .note(format!("`matrix.{}` would mean both; rename one of them", axis.key)),
            );
        }
    }
    if let Some(node) = node {
        refuse_expressions(node, sink);
    }
}

/// Reports values that are expressions: the combinations must be known before anything is evaluated.
fn refuse_expressions(node: &Node, sink: &mut Sink) {
    match &node.value {
        Value::String(text) if has_expression(text) => {
            sink.push(super::substitute::not_evaluated(node, "matrix"));
        }
        Value::Sequence(items) => items.iter().for_each(|item| refuse_expressions(item, sink)),
        Value::Mapping(entries) => entries.iter().for_each(|entry| refuse_expressions(&entry.value, sink)),
        _ => {}
    }
}

fn report_size(roles: &[Entry], jobs: usize, groups: usize, sink: &mut Sink) {
    let Some(role) = roles.iter().find(|role| role.value.get("matrix").is_some()) else { return };
    let all = jobs.saturating_mul(groups);
    let each = if jobs > 1 { format!("{groups} in each of {jobs} jobs") } else { "in all roles".to_owned() };
    let entries = role.value.entries();
    let key =
        entries.iter().find(|entry| entry.key == "matrix").map_or(role.key_span, |entry| entry.key_span);
    sink.push(
        Diagnostic::error(codes::MATRIX_SIZE, format!("the matrices have {all} combinations, {each}"))
            .at_span(key, format!("at most {MAX_COMBINATIONS} are allowed"))
            .note("every combination runs by itself; list fewer values"),
    );
}

fn is_map(node: &Node) -> bool {
    matches!(node.value, Value::Mapping(_))
}

fn child<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    match &mut node.value {
        Value::Mapping(entries) => {
            entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.value)
        }
        _ => None,
    }
}
