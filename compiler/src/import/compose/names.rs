//! The names by which services reach each other, and the roles they stand for.

use crate::document::{Entry, Node};
use crate::openpai::{MAX_ROLE_NAME, converted};

/// Names of services, aliases and containers with the role of each.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<(String, String)>);

impl Names {
    /// The names of all services.
    pub(super) fn new(services: &[(&Entry, &[Entry])]) -> Self {
        let mut names = Vec::new();
        for &(service, entries) in services {
            let Some(role) = converted(&service.key, MAX_ROLE_NAME, true) else { continue };
            let get = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value);
            let mut add = |name: &str| names.push((name.to_owned(), role.clone()));
            add(&service.key);
            get("container_name").and_then(Node::as_str).into_iter().for_each(&mut add);
            get("hostname").and_then(Node::as_str).into_iter().for_each(&mut add);
            for network in get("networks").map_or(&[][..], Node::entries) {
                let aliases = network.value.get("aliases").map_or(&[][..], Node::items);
                aliases.iter().filter_map(Node::as_str).for_each(&mut add);
            }
        }
        // A longer name first: `db-master` before `db`.
        names.sort_by_key(|(name, _): &(String, String)| std::cmp::Reverse(name.len()));
        Self(names)
    }

    /// Whether a service is one of the job.
    pub(super) fn has_service(&self, service: &str) -> bool {
        self.0.iter().any(|(name, _)| name == service)
    }

    /// A text in which the addresses of services are those of instances: `http://db:5432`, `db:5432`, `user@db/`.
    pub(super) fn rewrite(&self, key: &str, text: &str) -> String {
        if self.0.iter().all(|(_, role)| *role == self.0[0].1) {
            return text.to_owned();
        }
        let key = key.to_ascii_uppercase();
        let is_host = ["HOST", "ADDR", "SERVER"].iter().any(|word| key.contains(word));
        if let Some((_, role)) = self.0.iter().find(|(name, _)| is_host && name == text) {
            return host(role);
        }
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        'next: while at < text.len() {
            let rest = &text[at..];
            let before = &text[..at];
            if before.is_empty()
                || before.ends_with([' ', '=', ',', '@', '"', '\'', '(', ';'])
                || before.ends_with("//")
            {
                for (name, role) in &self.0 {
                    let Some(after) = rest.strip_prefix(name.as_str()) else { continue };
                    let is_port = after.strip_prefix(':').is_some_and(|port| {
                        port.starts_with(|c: char| c.is_ascii_digit()) || port.starts_with("${{")
                    });
                    let in_url = before.ends_with("//") || before.ends_with('@');
                    if is_port || in_url && (after.is_empty() || after.starts_with(['/', '?', ','])) {
                        out.push_str(&host(role));
                        at += name.len();
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
}

fn host(role: &str) -> String {
    if role.contains('-') {
        format!("${{{{ hosts['{role}'][0] }}}}")
    } else {
        format!("${{{{ hosts.{role}[0] }}}}")
    }
}

/// The services that others wait for until they are healthy.
pub(super) fn awaited(services: &[(&Entry, &[Entry])]) -> Vec<String> {
    let entries = services.iter().flat_map(|(_, entries)| *entries).filter(|entry| entry.key == "depends_on");
    let healthy =
        |entry: &&Entry| entry.value.get("condition").and_then(Node::as_str) == Some("service_healthy");
    entries
        .flat_map(|entry| entry.value.entries().iter().filter(healthy).map(|entry| entry.key.clone()))
        .collect()
}
