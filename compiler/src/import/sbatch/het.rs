//! Heterogeneous jobs: each component becomes a role.
//!
//! The first component runs the script. Lines before a program, such as exports and modules, are lines of every role.

use std::ops::Range;

use crate::diagnostic::Sink;
use crate::document::{Document, Entry, Node, Value};
use crate::openpai::{MAX_ROLE_NAME, converted};

use super::super::account::Account;
use super::super::draft::Draft;
use super::super::nodes::map;
use super::Script;
use super::body::Body;
use super::component;
use super::directives::Directive;
use super::layout::{Layout, ROLE};
use super::steps::Step;

/// One component of several.
pub(super) struct Part<'a> {
    /// Its number.
    index: usize,
    /// The role and the shape of each component.
    pub(super) components: &'a [(String, Layout)],
}

/// Reads a script of several components.
pub(super) fn read(
    script: &Script<'_>,
    all: &[Vec<Directive>],
    mut account: Account,
    sink: &mut Sink,
) -> (Document, Option<Node>, Account) {
    // The shapes and names first: each component names the others.
    let unknown =
        Layout { nodes: 1, tasks: 1, tasks_per_node: 1, instances: 1, tasks_per_instance: 1, gpus: None };
    let mut components: Vec<(String, Layout)> =
        (0..all.len()).map(|index| (format!("group-{index}"), unknown)).collect();
    let named = components.clone();
    for (index, directives) in all.iter().enumerate() {
        let mut aside = Sink::new();
        let mut draft = Draft::new(script.first, &mut aside);
        let layout =
            component::read(script, directives, Some(&Part { index, components: &named }), &mut draft);
        let run = draft.get(&["roles", ROLE, "run"]).and_then(Node::as_str).map(str::to_owned);
        components[index].1 = layout;
        let name = run.as_deref().and_then(program);
        if let Some(name) = name.filter(|name| components.iter().all(|(taken, _)| taken != name)) {
            components[index].0 = name;
        }
    }
    let mut job = Node { span: script.first, value: Value::Null };
    let mut targets: Option<Node> = None;
    for (index, directives) in all.iter().enumerate() {
        let mut draft = Draft::new(script.first, sink);
        component::read(script, directives, Some(&Part { index, components: &components }), &mut draft);
        let (document, settings, rows) = draft.finish();
        account.extend(&rows, &format!("roles.{ROLE}"), &format!("roles.{}", components[index].0));
        let own = own(document.root, &components[index].0);
        if index == 0 {
            (job, targets) = (own, settings);
            continue;
        }
        let first = directives.first().map_or(script.first, |directive| directive.span);
        let mut draft = Draft::new(script.first, sink);
        for field in joined(&mut job, own).into_iter().filter(|field| field != "name") {
            let message = format!("`{field}` of this component is that of the first one");
            draft.changed(first, message, "a job has one: write two jobs where they differ");
        }
        let mut settings = settings.unwrap_or(map(script.first, vec![]));
        match &mut targets {
            Some(known) => {
                for field in joined(known, std::mem::replace(&mut settings, map(script.first, vec![]))) {
                    let message = format!("`{field}` of this component is that of the first one");
                    draft.changed(first, message, "a target has one of them");
                }
            }
            None => targets = Some(settings),
        }
        account.extend(&draft.finish().2, "", "");
    }
    (Document { root: job }, targets.filter(|targets| !targets.entries().is_empty()), account)
}

/// The name of the role that runs a program: the last line of the script.
fn program(run: &str) -> Option<String> {
    let line = run.trim_end().lines().next_back()?;
    let words = line.split_whitespace().filter(|word| !word.starts_with('-') && !word.contains('='));
    let stem = |word: &str| camino::Utf8Path::new(word).file_stem().unwrap_or_default().to_owned();
    let runs = ["python", "python3", "bash", "sh", "singularity", "apptainer", "exec", "time", "env"];
    let name =
        words.map(|word| stem(word.trim_matches(['"', '\'']))).find(|name| !runs.contains(&name.as_str()))?;
    converted(&name, MAX_ROLE_NAME, true).filter(|_| !name.contains('$'))
}

/// A job whose only role has another name.
pub(super) fn renamed(job: Document, role: &str) -> Document {
    Document { root: own(job.root, role) }
}

fn own(mut job: Node, role: &str) -> Node {
    let Value::Mapping(entries) = &mut job.value else { return job };
    for entry in entries {
        match (entry.key.as_str(), &mut entry.value.value) {
            ("roles", Value::Mapping(roles)) => {
                for entry in roles {
                    role.clone_into(&mut entry.key);
                }
            }
            ("distributed", Value::Mapping(fields)) => {
                let lists = fields.iter_mut().filter(|field| field.key == "roles");
                for list in lists {
                    list.value = super::super::nodes::json(list.key_span, &serde_json::json!([role]));
                }
            }
            _ => {}
        }
    }
    job
}

/// Adds the entries of another map; returns the names of those that differ, and stay as they are.
fn joined(into: &mut Node, from: Node) -> Vec<String> {
    let (Value::Mapping(known), Value::Mapping(more)) = (&mut into.value, from.value) else { return vec![] };
    let mut differing = vec![];
    for Entry { key, key_span, value } in more {
        match known.iter_mut().find(|entry| entry.key == key) {
            Some(entry) if entry.value.to_json() == value.to_json() => {}
            Some(entry) if key == "image" => entry.value = both(&entry.value, &value),
            Some(entry) if ["roles", "env", "data", "params", "slurm", "extra"].contains(&key.as_str()) => {
                differing.extend(joined(&mut entry.value, value));
            }
            Some(_) => differing.push(key),
            None => known.push(Entry { key, key_span, value }),
        }
    }
    differing
}

/// The image of the host with the variables of both.
fn both(one: &Node, other: &Node) -> Node {
    let names = |node: &Node| -> Vec<serde_json::Value> {
        let list = node.get("host").and_then(|host| host.get("env")).map(Node::to_json);
        list.and_then(|list| list.as_array().cloned()).unwrap_or_default()
    };
    let mut all = names(one);
    for name in names(other) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    super::super::nodes::json(one.span, &serde_json::json!({"host": {"cwd": true, "env": all}}))
}

impl Part<'_> {
    /// The name of its role.
    pub(super) fn role(&self) -> &str {
        &self.components[self.index].0
    }

    /// Keeps the steps of this component, and removes those of others, and what only the first component runs.
    pub(super) fn take(
        &self,
        steps: Vec<Step>,
        body: &mut Body<'_>,
        text: &str,
        draft: &mut Draft<'_>,
    ) -> Vec<Step> {
        let (own, others): (Vec<Step>, Vec<Step>) =
            steps.into_iter().partition(|step| step.is_of(self.index));
        for step in &others {
            let (range, is_alone) = statement(text, step, &own);
            body.replace(range, if is_alone { "" } else { ":" });
        }
        for step in &own {
            let (line, is_alone) = statement(text, step, &[]);
            // Its end is that of the role.
            if is_alone && step.background && own.len() == 1 {
                let rest = &text[step.end..line.end];
                if let Some(at) = rest.rfind('&') {
                    body.remove(step.end + rest[..at].trim_end().len()..step.end + at + 1);
                }
            }
        }
        let waits = own.len() < 2;
        let is_open = text.lines().any(|line| {
            let line = line.trim_start();
            ["if ", "for ", "while ", "until ", "case ", "function "]
                .iter()
                .any(|word| line.starts_with(word))
                || line.contains("() {")
                || line.contains("<<")
        });
        if is_open && self.index > 0 {
            let at = body.span(0..text.find('\n').unwrap_or(text.len()));
            draft.changed(
                at,
                format!("the commands beside `srun` are those of `{}` too", self.role()),
                "remove what only the first component runs",
            );
        }
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let range = at..at + line.len();
            at = range.end;
            let content = line.trim();
            let of_step = |step: &Step| step.range.start < range.end && range.start < step.end;
            if own.iter().chain(&others).any(of_step) || content.is_empty() {
                continue;
            }
            if waits && content == "wait" || self.index > 0 && !is_open && !prepares(content) {
                body.remove(range);
            }
        }
        own
    }
}

/// The lines of a step, if nothing else is on them; else the step itself.
fn statement(text: &str, step: &Step, own: &[Step]) -> (Range<usize>, bool) {
    let begin = text[..step.range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[step.end..].find('\n').map_or(text.len(), |length| step.end + length + 1);
    let shares = own.iter().any(|step| step.range.start < end && begin < step.end);
    let is_alone = text[begin..step.range.start].trim().is_empty() && !shares;
    // Of several programs of one `srun`, the blanks behind this one go too.
    let blanks = text[step.end..].len() - text[step.end..].trim_start_matches(' ').len();
    if is_alone {
        (begin..end, true)
    } else {
        (step.range.start..step.end + if shares { blanks } else { 0 }, shares)
    }
}

/// Whether a line only prepares for a program.
fn prepares(line: &str) -> bool {
    const WORDS: [&str; 14] = [
        "export", "cd", "source", ".", "module", "ml", "conda", "mamba", "set", "ulimit", "unset", "umask",
        "mkdir", "shopt",
    ];
    let word = line.split_whitespace().next().unwrap_or_default();
    let is_assignment = word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    line.starts_with('#') || WORDS.contains(&word) || is_assignment
}
