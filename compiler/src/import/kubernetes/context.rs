//! What all pods of a job share: its names, and how texts of manifests read in a job file.

use std::collections::BTreeMap;

use crate::openpai::converted;

use super::kinds::Kind;
use super::objects::Objects;

/// The maximum number of instances whose host names are looked for in texts.
const MAX_NAMED: u64 = 64;

/// What all pods of a job share.
pub(super) struct Context<'a> {
    /// The kind of the object.
    pub(super) kind: &'static Kind,
    /// The name of the job in the source.
    pub(super) job: String,
    /// The other objects of the file.
    pub(super) objects: &'a Objects<'a>,
    /// Host names of pods, longest first, with the role and the number of the instance.
    hosts: Vec<(String, String, u64)>,
    /// Claims that the object makes for its pods: names, and the sizes of those that each pod has for itself.
    pub(super) claims: Vec<(String, Option<String>)>,
    /// The volumes that the containers of a pod share, by role, with the names of the directories of the job.
    pub(super) handed: BTreeMap<String, BTreeMap<String, String>>,
    /// Whether there is one group of pods alone.
    pub(super) is_single: bool,
}

/// A group of pods, as host names need it.
pub(super) struct Named<'a> {
    /// The name in the source.
    pub(super) source: &'a str,
    /// The name of the role.
    pub(super) role: &'a str,
    /// The number of instances.
    pub(super) instances: u64,
}

/// Where a text is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// A script, which a shell reads.
    Script,
    /// A word of a command, or a value.
    Word,
}

/// A variable of a container, for `$(NAME)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Its value in the job file.
    Value(String),
    /// The value is known when the task runs.
    Later,
}

impl<'a> Context<'a> {
    /// The names of a job's pods.
    pub(super) fn new(
        kind: &'static Kind,
        job: &str,
        objects: &'a Objects<'a>,
        groups: &[Named<'_>],
    ) -> Self {
        let mut hosts = Vec::new();
        for group in groups {
            for pattern in kind.hosts {
                let name = pattern.replace("{job}", job).replace("{group}", &group.source.to_lowercase());
                let name = name.replace("{0}", "0");
                let count = if name.contains("{i}") { group.instances.min(MAX_NAMED) } else { 1 };
                // One group's pods alone have the bare name of the job.
                hosts.extend(
                    (0..count)
                        .filter(|_| !job.is_empty())
                        .map(|index| (name.replace("{i}", &index.to_string()), group.role.to_owned(), index)),
                );
            }
        }
        hosts.sort_by_key(|(name, ..)| std::cmp::Reverse(name.len()));
        hosts.dedup_by(|one, other| one.0 == other.0);
        let (claims, handed) = (vec![], BTreeMap::new());
        Self { kind, job: job.to_owned(), objects, hosts, claims, handed, is_single: groups.len() < 2 }
    }

    /// The part of a role in the framework.
    pub(super) fn part(&self, role: &str) -> Option<&'static str> {
        self.kind.parts.iter().find(|(_, name, _)| *name == role).map(|(.., part)| *part)
    }

    /// A text as a job file has it: host names of pods and variables of the controller are those of jobc.
    pub(super) fn text(&self, text: &str, of: Use) -> String {
        let text = text.replace("${{", "${{ '${{' }}");
        let text = self.with_hosts(&text);
        if of == Use::Word { text } else { self.with_variables(&text) }
    }

    /// Replaces host names, with the domain behind them, by expressions.
    fn with_hosts(&self, text: &str) -> String {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        'next: while at < text.len() {
            let rest = &text[at..];
            if !out.ends_with(|c: char| is_part(c) || matches!(c, '.' | '/' | '{')) || out.ends_with("//") {
                for (name, role, index) in &self.hosts {
                    let Some(after) = rest.strip_prefix(name.as_str()) else { continue };
                    let domain = after.strip_prefix('.').map_or(0, |domain| {
                        let length = domain.find(|c: char| !is_part(c) && c != '.').unwrap_or(domain.len());
                        if domain.starts_with(|c: char| c.is_ascii_lowercase()) { length + 1 } else { 0 }
                    });
                    // A bare name is a host only in front of a port, or with its domain.
                    let is_host = domain > 0 || after.starts_with(':') && name.contains(char::is_numeric);
                    if is_host && !after[domain..].starts_with(is_part) {
                        out.push_str(&host(role, *index));
                        at += name.len() + domain;
                        continue 'next;
                    }
                }
            }
            let length = rest.chars().next().map_or(1, char::len_utf8);
            out.push_str(&rest[..length]);
            at += length;
        }
        out
    }

    /// Replaces variables that the controller sets by those of jobc.
    fn with_variables(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (theirs, ours) in self.kind.variables {
            text = replaced(&text, theirs, ours);
        }
        text
    }
}

/// Replaces a word that is not part of a longer name.
fn replaced(text: &str, word: &str, by: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        out.push_str(before);
        let is_word = !out.ends_with(is_part) && !after.starts_with(is_part);
        out.push_str(if is_word { by } else { word });
        rest = after;
    }
    out + rest
}

/// The address of an instance.
fn host(role: &str, index: u64) -> String {
    if role.contains('-') {
        format!("${{{{ hosts['{role}'][{index}] }}}}")
    } else {
        format!("${{{{ hosts.{role}[{index}] }}}}")
    }
}

/// Expands `$(NAME)` and `$$` as the kubelet does: names that the container does not set stay as they are. The error is the
/// name of a variable whose value is known only when the task runs.
pub(super) fn expanded(
    text: &str,
    of: Use,
    lookup: &dyn Fn(&str) -> Option<Known>,
) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(more) = after.strip_prefix('$') {
            out.push('$');
            rest = more;
            continue;
        }
        let inner = after.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        if let Some((name, known, more)) = inner.and_then(|(name, more)| Some((name, lookup(name)?, more))) {
            match (of, known) {
                (Use::Word, Known::Value(value)) => out.push_str(&value),
                (Use::Word, Known::Later) => return Err(name.to_owned()),
                (Use::Script, _) => out.push_str(&format!("${{{name}}}")),
            }
            rest = more;
        } else {
            out.push('$');
            rest = after;
        }
    }
    Ok(out + rest)
}

/// The name of a role for a group of pods.
pub(super) fn role_name(kind: &Kind, source: &str) -> Option<String> {
    let known = kind.parts.iter().find(|(name, ..)| *name == source).map(|(_, role, _)| (*role).to_owned());
    known.or_else(|| converted(source, crate::openpai::MAX_ROLE_NAME, true))
}
