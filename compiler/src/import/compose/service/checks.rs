//! What a service waits for, and how others know that it is ready.

use crate::document::{Node, Value};
use crate::openpai::{MAX_ROLE_NAME, converted};
use crate::source::Span;

use super::super::super::container;
use super::super::super::keyed::only;
use super::super::super::nodes::{sequence, string};
use super::super::super::values::{scalar, text_at, texts};
use super::Service;

/// Keys of a check.
const HEALTH: [&str; 7] =
    ["disable", "interval", "retries", "start_interval", "start_period", "test", "timeout"];

impl Service<'_, '_, '_> {
    pub(super) fn needs(&mut self, node: &Node, part: Span) {
        let named = |name: &str| converted(name, MAX_ROLE_NAME, true).unwrap_or_default();
        for entry in node.entries() {
            only(&entry.value, &["condition", "required", "restart"], "`depends_on`", self.role.draft);
        }
        let items = match &node.value {
            Value::Mapping(entries) => entries
                .iter()
                .map(|entry| {
                    (
                        entry.key.clone(),
                        text_at(&entry.value, "condition").unwrap_or("service_started".to_owned()),
                        entry.key_span,
                    )
                })
                .collect::<Vec<_>>(),
            _ => texts(node)
                .into_iter()
                .map(|(name, span)| (name, "service_started".to_owned(), span))
                .collect(),
        };
        if items.is_empty() {
            self.role.draft.note(part, "empty: the default");
        }
        for (name, condition, part) in items {
            let state = match condition.as_str() {
                "service_started" => "started",
                "service_healthy" => "ready",
                "service_completed_successfully" => "succeeded",
                _ => {
                    self.role.draft.invalid(part, format!("unknown condition `{condition}`"), "");
                    continue;
                }
            };
            if !self.project.names.has_service(&name) {
                self.role.draft.note(part, "the service is left out: it has a profile");
                continue;
            }
            let needed = named(&name);
            self.role.field(&["needs", &needed], part, string(part, state));
        }
    }

    pub(super) fn health(&mut self, node: &Node, part: Span) {
        only(node, &HEALTH, "`healthcheck`", self.role.draft);
        let is_off = node.get("disable").is_some_and(|off| off.to_json() == true);
        let test = node.get("test");
        let words: Vec<(String, Span)> = test.map(texts).unwrap_or_default();
        let first = words.first().map(|(word, _)| word.as_str());
        let is_awaited = self.project.awaited.iter().any(|name| name == self.name);
        if is_off || first == Some("NONE") {
            return self.role.draft.note(part, "no check");
        }
        if !is_awaited {
            return self.role.draft.note(part, "no service waits for this one to be healthy");
        }
        let Some(test) = test else {
            return self.role.draft.refuse(
                part,
                "the check is that of the image",
                "write the command as `test`",
            );
        };
        let at = test.span;
        let list = match first {
            Some("CMD") => {
                words[1..].iter().map(|(word, at)| string(*at, self.resolved("test", word, *at))).collect()
            }
            Some("CMD-SHELL") => {
                let command = words.get(1).map(|(word, _)| word.clone()).unwrap_or_default();
                let command = self.resolved("test", &command, at);
                container::health_command(&command, at).items().to_vec()
            }
            _ => {
                let command = self.resolved("test", first.unwrap_or_default(), at);
                container::health_command(&command, at).items().to_vec()
            }
        };
        self.role.field(&["ready", "exec"], part, sequence(at, list));
        for entry in node.entries() {
            let (key, at) = (entry.key.as_str(), entry.key_span);
            let value = scalar(&entry.value).map(|value| self.text(&value, at)).unwrap_or_default();
            match key {
                "interval" => self.time(&["ready", "every"], &value, at),
                "timeout" => self.time(&["ready", "try_timeout"], &value, at),
                "start_period" => self.time(&["ready", "delay"], &value, at),
                "retries" => self.role.draft.note(at, "`ready` is tried until its `timeout`"),
                "start_interval" => self.role.draft.note(at, "`ready.every` is the time between all checks"),
                _ => {}
            }
        }
    }

    pub(super) fn time(&mut self, path: &[&str], text: &str, part: Span) {
        match container::duration(text) {
            Some(time) => self.role.field(path, part, string(part, time)),
            None if text.contains("${{") => self.role.field(path, part, string(part, text)),
            None => self.role.draft.invalid(part, format!("`{text}` is not a time such as `30s`"), ""),
        }
    }
}
