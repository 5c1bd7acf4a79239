//! What changed in the fields of jobs; equal changes of roles, jobs and targets are one.

use std::collections::{BTreeMap, HashMap};

use jobc_compiler::why::source_map::Part;
use jobc_schema::pointer::unescape;
use serde_json::Value;

use super::compare::{PLAN, Side, differences, file, pairs, parts_of};
use super::fields::Fields;
use super::target_files::TargetFiles;

/// A changed field, and where it changed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldChange {
    /// The path of the field: below the role, if there are roles.
    pub field: String,
    /// The old value; `None` if it is new.
    pub old: Option<Value>,
    /// The new value; `None` if it was removed.
    pub new: Option<Value>,
    /// The roles; empty for a field of the job.
    pub roles: Vec<ChangedRole>,
    /// The jobs and targets.
    pub jobs: Vec<ChangedJob>,
    /// The files and lines of the new value.
    pub causes: Vec<(String, u32)>,
}

/// A role of a changed field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChangedRole {
    pub name: String,
    /// The role with the matrix, and the number of its combinations, if the role is one of them.
    pub matrix: Option<(String, usize)>,
}

/// A job for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangedJob {
    pub job: String,
    pub target: String,
    /// Whether the job is a combination of a matrix.
    pub is_combination: bool,
}

impl FieldChange {
    /// Whether a field is a consequence of others.
    pub(crate) fn is_total(&self) -> bool {
        self.field.starts_with("totals.")
    }

    fn add_causes(&mut self, causes: impl IntoIterator<Item = (String, u32)>) {
        for cause in causes {
            if !self.causes.contains(&cause) {
                self.causes.push(cause);
            }
        }
    }
}

/// The changed fields of jobs. Those with the same values are one.
#[derive(Default)]
pub(crate) struct FieldChanges {
    /// In the order of the jobs.
    pub all: Vec<FieldChange>,
    /// The change of a key.
    known: HashMap<String, usize>,
}

impl FieldChanges {
    /// Adds what changed in the jobs of a file.
    pub(crate) fn add(&mut self, then: &[TargetFiles], now: &[TargetFiles]) {
        for (job, target, old, new) in pairs(then, now) {
            let plan = |files: Option<&TargetFiles>| Some(file(files?, PLAN)?.to_vec());
            let place =
                |is_combination| ChangedJob { job: job.clone(), target: target.clone(), is_combination };
            match (plan(old), plan(new)) {
                (Some(before), Some(after)) if before != after => {
                    if let (Some(before), Some(after)) = (Fields::of_plan(&before), Fields::of_plan(&after)) {
                        let place = place(after.is_combination);
                        for change in of_job(&before, &after, new) {
                            self.merge(change, &place);
                        }
                    }
                }
                (None, Some(plan)) => self.merge(whole(None, Some("job")), &place(is_combination(&plan))),
                (Some(plan), None) => self.merge(whole(Some("job"), None), &place(is_combination(&plan))),
                _ => {}
            }
        }
    }

    fn merge(&mut self, change: FieldChange, place: &ChangedJob) {
        let roles: Vec<_> = change.roles.iter().map(|role| (&role.name, &role.matrix)).collect();
        let key = format!("{:?}", (&change.field, &change.old, &change.new, roles));
        let index = *self.known.entry(key).or_insert(self.all.len());
        if index == self.all.len() {
            self.all.push(change);
        } else {
            self.all[index].add_causes(change.causes);
        }
        self.all[index].jobs.push(place.clone());
    }
}

/// A job that is new or gone.
fn whole(old: Option<&str>, new: Option<&str>) -> FieldChange {
    FieldChange {
        field: String::new(),
        old: old.map(Value::from),
        new: new.map(Value::from),
        roles: vec![],
        jobs: vec![],
        causes: vec![],
    }
}

fn is_combination(plan: &[u8]) -> bool {
    Fields::of_plan(plan).is_some_and(|fields| fields.is_combination)
}

/// The changed fields of one job; those of several roles are one change.
fn of_job(before: &Fields, after: &Fields, new: Option<&TargetFiles>) -> Vec<FieldChange> {
    let lines = new.map(lines_of).unwrap_or_default();
    let cause = |side: Side, pointer: &str| match side {
        Side::Old => None,
        Side::New => line_of(&lines, &after.declared, pointer),
    };
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for declared in after.declared.values().chain(
        before.declared.iter().filter(|(name, _)| !after.declared.contains_key(*name)).map(|(_, it)| it),
    ) {
        *sizes.entry(declared).or_default() += 1;
    }
    let mut changes: Vec<FieldChange> = vec![];
    let mut known: HashMap<String, usize> = HashMap::new();
    for change in differences(&before.tree, &after.tree, &cause) {
        let (role, field) = match change.place.strip_prefix("roles.") {
            Some(below) => {
                let (role, field) = below.split_once('.').unwrap_or((below, ""));
                (Some(role.to_owned()), field.to_owned())
            }
            None => (None, change.place),
        };
        let role = role.map(|name| {
            let declared = after.declared.get(&name).or_else(|| before.declared.get(&name));
            let matrix = declared.filter(|declared| **declared != name);
            let size = |declared: &String| sizes.get(declared.as_str()).copied().unwrap_or(1);
            ChangedRole { matrix: matrix.map(|declared| (declared.clone(), size(declared))), name }
        });
        let (mut old, mut new) = (change.old, change.new);
        if role.is_some() && field.is_empty() {
            // A role that is new or gone as a whole: its fields are all new or gone.
            (old, new) = (old.map(|_| "role".into()), new.map(|_| "role".into()));
        }
        let key = format!("{:?}", (role.is_some(), &field, &old, &new));
        let index = *known.entry(key).or_insert(changes.len());
        if index == changes.len() {
            changes.push(FieldChange { field, old, new, roles: vec![], jobs: vec![], causes: vec![] });
        }
        changes[index].roles.extend(role);
        changes[index].add_causes(change.cause.and_then(|part| Some((part.file?, part.start?[0]))));
    }
    changes
}

/// The parts of all built files that come from a field, by the field.
fn lines_of(files: &TargetFiles) -> HashMap<String, Part> {
    let parts = parts_of(files).into_values().flatten();
    parts.filter_map(|part| Some((part.spec.clone()?, part))).collect()
}

/// The part of a field or of one above it, but not that of a whole role.
fn line_of(
    lines: &HashMap<String, Part>,
    declared: &BTreeMap<String, String>,
    pointer: &str,
) -> Option<Part> {
    let written = match pointer.strip_prefix("/roles/") {
        Some(below) => {
            let (role, field) = below.split_once('/')?;
            let role = unescape(role);
            format!("/roles/{}/{field}", declared.get(&role).unwrap_or(&role))
        }
        None => pointer.to_owned(),
    };
    let top = if written.starts_with("/roles/") { 3 } else { 1 };
    let mut at = written.as_str();
    while at.matches('/').count() >= top {
        if let Some(part) = lines.get(at) {
            return Some(part.clone());
        }
        at = &at[..at.rfind('/')?];
    }
    None
}
