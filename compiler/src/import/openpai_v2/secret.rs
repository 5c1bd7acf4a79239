//! Secrets, of which only references are kept, never values; and registry credentials.

use indexmap::IndexMap;

use super::findings::note_kept;
use super::prerequisites::Pool;
use super::role::TaskRole;
use super::template::{Scope, secret_name};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Entry, Node, Value};
use crate::import::fields::{Fields, wrong};
use crate::import::nodes::{entry, map, string};
use crate::source::Span;

/// The credentials for the images of roles, by host.
#[derive(Default)]
pub(super) struct Registries(IndexMap<String, (Span, String, String)>);

impl Registries {
    /// Reads the credentials for a role's image.
    pub(super) fn read(&mut self, role: &TaskRole<'_>, pool: &Pool<'_>, scope: &Scope<'_>, sink: &mut Sink) {
        let Some((field, _)) = role.image else { return };
        let found = field.value.as_str().and_then(|name| pool.find("dockerimage", name));
        let Some((found, auth)) = found.and_then(|found| Some((found, found.node.get("auth")?))) else {
            return;
        };
        let place = auth.entries().first().map_or(auth.span, |first| first.key_span);
        let auth = Fields { node: auth, place, within: format!(" in the log-in of `{}`", found.name) };
        let host =
            auth.text("registryuri", sink).map_or_else(|| "docker.io".to_owned(), |(_, uri)| host_of(uri));
        if self.0.contains_key(&host) {
            return;
        }
        auth.refuse_others(&["username", "password", "registryuri"], sink);
        let Some((user, password)) = auth.required("username", sink).zip(auth.required("password", sink))
        else {
            return;
        };
        let (Some((_, username)), Some(template)) = (auth.text("username", sink), password.value.as_str())
        else {
            if password.value.as_str().is_none() {
                wrong(password, "a string", sink);
            }
            return;
        };
        if username.contains("<%") {
            sink.push(note_kept("a log-in whose user is a template", user.value.span));
            return;
        }
        let inner = template.trim().strip_prefix("<%").and_then(|rest| rest.strip_suffix("%>"));
        let Some(secret) = inner.and_then(|inner| inner.trim().strip_prefix("$secrets.")) else {
            sink.push(
                Diagnostic::error(codes::OPENPAI_SECRET, "password in plain text")
                    .at_span(password.value.span, "everyone who can read the job can read it")
                    .note("write `<% $secrets.NAME %>`, and the name with its value under `secrets`, which OpenPAI hides"),
            );
            return;
        };
        scope.fill(template, password.value.span, sink);
        self.0.insert(host, (place, username.to_owned(), secret_name(secret.trim())));
    }

    /// `registries`, if there are any.
    pub(super) fn entry(&self) -> Option<Entry> {
        let (_, (first, ..)) = self.0.first()?;
        let hosts = self.0.iter().map(|(host, (at, username, secret))| {
            let password = map(*at, vec![entry("secret", *at, string(*at, secret.as_str()))]);
            let login = vec![
                entry("username", *at, string(*at, username.as_str())),
                entry("password", *at, password),
            ];
            entry(host.as_str(), *at, map(*at, login))
        });
        Some(entry("registries", *first, map(*first, hosts.collect())))
    }
}

/// The host of a registry's address; Docker Hub's has another name in references.
fn host_of(uri: &str) -> String {
    let uri = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    let host = uri.split('/').next().unwrap_or_default();
    match host {
        "" | "index.docker.io" | "registry-1.docker.io" | "registry.hub.docker.com" => "docker.io".to_owned(),
        host => host.to_owned(),
    }
}

/// `secrets`: the source of each value when the job starts.
pub(super) fn declared(
    written: &[Entry],
    roles: &[TaskRole<'_>],
    registries: &Registries,
    first: Span,
    sink: &mut Sink,
) -> Option<Entry> {
    let mut secrets: IndexMap<String, Entry> = IndexMap::new();
    for field in written {
        let ours = secret_name(&field.key);
        let text = field.value.as_str().unwrap_or_default();
        let (kind, from) = reference(text).unwrap_or_else(|| {
            let variable = variable(&ours);
            sink.push(
                Diagnostic::info(codes::OPENPAI_SECRET, format!("the value of the secret `{}` is not kept", field.key))
                    .at_span(field.key_span, "")
                    .note(format!("set the variable `{variable}` when you start the job; values of secrets are never in a plan or output")),
            );
            ("env", variable)
        });
        let at = field.value.span;
        secrets.insert(ours.clone(), entry(ours, field.key_span, source(kind, &from, at)));
    }
    // Secrets in another document, by their use.
    let used = roles.iter().flat_map(|role| &role.entries).filter(|entry| entry.key == "env");
    let used = used.flat_map(|env| env.value.entries()).filter_map(|entry| {
        let name = entry.value.as_str()?.strip_prefix("${{ secrets.")?.strip_suffix(" }}")?;
        Some((name.to_owned(), entry.value.span))
    });
    let used = used.chain(registries.0.values().map(|(at, _, secret)| (secret.clone(), *at)));
    for (name, at) in used {
        if !secrets.contains_key(&name) {
            let node = source("env", &variable(&name), at);
            secrets.insert(name.clone(), entry(name, at, node));
        }
    }
    (!secrets.is_empty()).then(|| entry("secrets", first, map(first, secrets.into_values().collect())))
}

fn source(kind: &str, from: &str, at: Span) -> Node {
    let value = match from.split_once('/').filter(|_| kind == "store") {
        Some((name, key)) => {
            map(at, vec![entry("name", at, string(at, name)), entry("key", at, string(at, key))])
        }
        None => string(at, from),
    };
    Node { span: at, value: Value::Mapping(vec![entry(kind, at, value)]) }
}

/// The meaning of a placeholder that jobc wrote.
fn reference(text: &str) -> Option<(&'static str, String)> {
    let inner = text.strip_prefix("${")?.strip_suffix('}')?;
    let (kind, from) = inner.split_once(':')?;
    let kind = ["env", "file", "store"].into_iter().find(|known| *known == kind)?;
    Some((kind, from.to_owned()))
}

fn variable(secret: &str) -> String {
    secret.to_ascii_uppercase().replace('-', "_")
}
