//! Readiness probes.

use jobc_schema::plan::{PortPlan, ProbePlan, ReadyPlan};
use jobc_schema::role::Role;
use jobc_schema::{Pointer, Seconds};
use regex::bytes::Regex;

use super::scope::RoleScope;
use super::text::Texts;
use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::suggest;

/// The probe of a role with its timing.
pub(super) fn resolve_ready(
    texts: &Texts<'_>,
    role: &Role,
    scope: &RoleScope<'_>,
    at: &Pointer,
    sink: &mut Sink,
) -> Option<ReadyPlan> {
    let ready = role.ready.as_ref()?;
    let at = at.key("ready");
    let mut probes: Vec<ProbePlan> = Vec::new();
    if let Some(label) = &ready.port {
        check_label(label, scope, &at.key("port"), sink);
        probes.push(ProbePlan::Port(label.clone()));
    }
    if let Some(http) = &ready.http {
        check_label(&http.port, scope, &at.keys(["http", "port"]), sink);
        if !http.path.starts_with('/') {
            let (at, instead) = (at.keys(["http", "path"]), format!("/{}", http.path));
            sink.push(
                Diagnostic::error(codes::READY, format!("the path `{}` does not begin with `/`", http.path))
                    .at(&at, "")
                    .note(format!("write `{instead}`"))
                    .write(Location::inside(&at, &http.path, 0..http.path.len()), &instead),
            );
        }
        probes.push(ProbePlan::Http { port: http.port.clone(), path: http.path.clone() });
    }
    if let Some(exec) = &ready.exec {
        probes.push(ProbePlan::Exec(texts.texts(exec, &at.key("exec"), sink)));
    }
    if let Some(log) = &ready.log {
        check_pattern(log, &at.key("log"), sink);
        probes.push(ProbePlan::Log(log.clone()));
    }
    let seconds = |written: Option<Seconds>, usual: u64| written.map_or(usual, |t| t.0);
    // Exactly one is set: an earlier pass checks it.
    let probe = probes.into_iter().next()?;
    Some(ReadyPlan {
        probe,
        delay_seconds: seconds(ready.delay, 0),
        every_seconds: seconds(ready.every, 5).max(1),
        try_timeout_seconds: seconds(ready.try_timeout, 5).max(1),
        timeout_seconds: seconds(ready.timeout, 600),
        keep: ready.keep,
    })
}

/// Reports a pattern that the component that watches the log cannot use.
fn check_pattern(pattern: &str, at: &Pointer, sink: &mut Sink) {
    let Err(error) = Regex::new(pattern) else { return };
    // The lines before the last one show the position in the pattern.
    let error = error.to_string();
    let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
    sink.push(
        Diagnostic::error(codes::READY_PATTERN, format!("`{pattern}` is not a regular expression: {why}"))
            .at(at, "")
            .note("escape a literal character with a backslash, as in `ready \\(pid [0-9]+\\)`"),
    );
}

/// The port that the page is served on, if another name was given.
fn of_http<'a>(label: &str, mut labels: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    matches!(label, "web" | "www" | "api" | "https").then(|| labels.find(|known| *known == "http")).flatten()
}

fn check_label(label: &str, scope: &RoleScope<'_>, at: &Pointer, sink: &mut Sink) {
    let labels = || scope.ports().iter().map(|port| port.label.as_str());
    if labels().any(|known| known == label) {
        return;
    }
    let diagnostic = Diagnostic::error(codes::PORT_UNKNOWN, format!("unknown port `{label}` of the role"));
    let number = |port: &&PortPlan| label.parse() == Ok(port.number);
    let by_number = scope.ports().iter().find(number).map(|port| port.label.as_str());
    let near = suggest::nearest(label, labels()).or(by_number).or_else(|| of_http(label, labels()));
    if let Some(near) = near {
        sink.push(diagnostic.suggest_value(at, label, near));
        return;
    }
    let known = match labels().next() {
        Some(_) => format!("its ports are {}", suggest::list(labels())),
        None => "it declares none".to_owned(),
    };
    let (add, name) = match label.parse::<u16>() {
        Ok(number) => (format!("http: {number}"), ", and name it by its label, `http`"),
        Err(_) => (format!("{label}: 8080"), ""),
    };
    sink.push(
        diagnostic.at(at, "").note(format!("{known}; add it as `resources: {{ports: {{{add}}}}}`{name}")),
    );
}
