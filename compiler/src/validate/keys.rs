//! Unknown keys, and missing keys.

use jobc_schema::Pointer;
use serde_json::Value as Json;

use crate::diagnostic::{Diagnostic, Safety, Shape, codes};
use crate::document::{Entry, Node, Value};
use crate::suggest;

use super::accepted::fits;
use super::compose;
use super::foreign;
use super::place::{self, RelativePath};
use super::refused_value::RefusedValue;
use super::report::Report;
use super::schema::Schema;
use super::values;

/// The maximum number of places that a message names for a key that belongs elsewhere.
const PLACES: usize = 3;

/// Reports a key that is unknown in its map: the intended key, or where the key belongs.
pub(super) fn unknown(refused: &RefusedValue<'_>, key: &str, report: &mut Report<'_>) {
    let at = refused.at.key(key);
    let place = &refused.segments;
    let known = refused.schema.keys(place);
    let wrong = format!("unknown key `{key}`{}", place::within(place));
    let error = |instead: &str| {
        Diagnostic::error(codes::UNKNOWN_KEY, format!("{wrong}{instead}")).at_place(report.key(&at), "")
    };
    let ways = ways(refused.schema, place, key);
    let straight = || ways.iter().filter(|way| way.up == 0 || way.down == 0).collect::<Vec<_>>();
    let near = suggest::nearest(key, known.iter().map(String::as_str));

    if is_misindented(refused, report) {
        // The empty entry before it is reported, with how to indent.
        return;
    }
    let advice = foreign::find(place, key);
    // A misspelling of another tool's key, only if none of ours is similar.
    let advice = advice.or_else(|| foreign::near(place, key).filter(|_| near.is_none() && ways.is_empty()));
    let diagnostic = if let Some(advice) = advice {
        match advice.write {
            Some(target) => suggest_key(refused, key, target, advice, report),
            None => without_counterpart(error("").note(advice.note), refused, key, report),
        }
    } else if !straight().is_empty() {
        let diagnostic = error(&format!("; it belongs {}", words(&straight(), place, report)));
        match &straight()[..] {
            [way] => move_key(diagnostic, &at, way, key, report),
            _ => diagnostic,
        }
    } else if let Some(near) = near {
        let near = near.to_owned();
        let diagnostic = error(&format!("; did you mean `{near}`?"));
        // Never overwrite an existing key.
        match refused.node.get(&near) {
            None => report.rename(diagnostic, &at, &near, Safety::Safe),
            Some(other) => {
                let diagnostic = diagnostic.note(format!("`{near}` is written here as well"));
                let says_the_same =
                    refused.node.get(key).is_some_and(|node| node.to_json() == other.to_json());
                if says_the_same {
                    report.remove(diagnostic, &at)
                } else {
                    report.comment_out(diagnostic, &at)
                }
            }
        }
    } else if !ways.is_empty() {
        error(&format!("; it is a key {}", words(&ways.iter().collect::<Vec<_>>(), place, report)))
    } else if let Some((name, way)) = find_elsewhere(refused.schema, place, key) {
        error(&format!("; did you mean `{name}` {}?", way.words(place, report.document)))
    } else {
        report.comment_out(error("").note(format!("the keys known here are {}", list_keys(known))), &at)
    };
    report.push(diagnostic);
}

/// Whether a map is a key of a role that stands beside the role's name instead of below it.
fn is_misindented(refused: &RefusedValue<'_>, report: &Report<'_>) -> bool {
    let [roles, name] = &refused.segments[..] else { return false };
    let role = [roles.clone(), "*".to_owned()];
    let is_empty = |node: &Node| node.entries().iter().any(|entry| matches!(entry.value.value, Value::Null));
    roles == "roles"
        && refused.schema.keys(&role).iter().any(|known| known == name)
        && report.document.at(&Pointer::ROOT.key("roles")).is_some_and(is_empty)
}

/// Suggests moving a key to where it belongs, if that is one place and free.
fn move_key(
    diagnostic: Diagnostic,
    at: &Pointer,
    way: &RelativePath,
    key: &str,
    report: &Report<'_>,
) -> Diagnostic {
    match way.pointer(key, report.document) {
        Some(to) => report.move_entry(diagnostic, at, &to, None),
        None => diagnostic,
    }
}

/// Suggests a fix for a key that has no meaning: a map of known keys moves up, anything else becomes a comment.
fn without_counterpart(
    diagnostic: Diagnostic,
    refused: &RefusedValue<'_>,
    key: &str,
    report: &Report<'_>,
) -> Diagnostic {
    let at = refused.at.key(key);
    if let Some(deploy) = refused.node.get(key).filter(|_| key == "deploy") {
        return write_deployment(diagnostic, refused, (&at, deploy), report);
    }
    let inner = refused.node.get(key).map_or(&[][..], Node::entries);
    let moves_up = matches!(key, "limits" | "requests" | "reservations")
        && !inner.is_empty()
        && inner.iter().all(|entry| refused.node.get(&entry.key).is_none());
    if moves_up {
        return report.reshape(
            diagnostic,
            &at,
            Shape::Unwrapped,
            format!("leave out `{key}`, but not what it holds"),
        );
    }
    report.comment_out(diagnostic, &at)
}

/// Suggests what `deploy` of a service is in a role; keys that the role has stay as they are.
fn write_deployment(
    diagnostic: Diagnostic,
    refused: &RefusedValue<'_>,
    (at, deploy): (&Pointer, &Node),
    report: &Report<'_>,
) -> Diagnostic {
    let found = compose::deployment(deploy);
    let below = refused.at.key("resources");
    let instances = found.instances.map(|count| (refused.at.key("instances"), count));
    let mut entries: Vec<(Pointer, Json)> = instances.into_iter().collect();
    match refused.node.get("resources") {
        None if found.resources.is_empty() => {}
        None => entries.push((below, Json::Object(found.resources))),
        Some(_) => entries.extend(found.resources.into_iter().map(|(key, value)| (below.key(&key), value))),
    }
    let all = entries.len();
    entries.retain(|(to, _)| report.document.at(to).is_none());
    if entries.is_empty() {
        return report.comment_out(diagnostic, at);
    }
    let keep = found.has_more || entries.len() < all;
    report.write_instead(diagnostic, at, &entries, keep)
}

/// Reports a key of another tool.
fn suggest_key(
    refused: &RefusedValue<'_>,
    key: &str,
    target: &str,
    advice: &foreign::Advice,
    report: &Report<'_>,
) -> Diagnostic {
    let place = &refused.segments;
    let at = refused.at.key(key);
    let mut path: Vec<String> = target.split('.').map(str::to_owned).collect();
    let name = path.pop().unwrap_or_default();
    let way = RelativePath::between(place, &path);
    let wrong = format!("unknown key `{key}`{}", place::within(place));
    let message = if way.up == 0 && way.down == 0 {
        format!("{wrong}; write `{name}`")
    } else if name == key {
        format!("{wrong}; it belongs {}", way.words(place, report.document))
    } else {
        format!("{wrong}; write `{name}` {}", way.words(place, report.document))
    };
    let diagnostic = Diagnostic::error(codes::UNKNOWN_KEY, message).at_place(report.key(&at), "");
    let mut diagnostic = write_key(diagnostic, refused, key, (target, advice.note.is_empty()), report);
    if !advice.note.is_empty() {
        diagnostic = diagnostic.note(advice.note);
    }
    diagnostic
}

/// What publishes the ports of a role at those of the host that its list names.
fn host_ports(refused: &RefusedValue<'_>, target: &str, node: &Node) -> Option<String> {
    let [_, role] = &refused.segments[..] else { return None };
    let options = compose::publish_options(role, node);
    (target == "roles.*.resources.ports" && !options.is_empty()).then(|| {
        format!(
            "a port of the host is an option of the run: with `network: job` in the job file, `jobc run {}`",
            options.join(" ")
        )
    })
}

/// Suggests our key and value instead, unless that key exists.
fn write_key(
    diagnostic: Diagnostic,
    refused: &RefusedValue<'_>,
    key: &str,
    (target, alike): (&str, bool),
    report: &Report<'_>,
) -> Diagnostic {
    let at = refused.at.key(key);
    let Some(node) = refused.node.get(key) else { return diagnostic };
    let translation = values::translate(target, key, node, refused.node);
    let mut path: Vec<String> = translation.path.split('.').map(str::to_owned).collect();
    let takes = |schema: &Schema| schema.at(&path).is_some_and(|part| fits(schema, part, node));
    // Only a value that can be valid there.
    let own_shape = matches!(target, "roles.*.ready" | "roles.*.security");
    if translation.value.is_none() && !alike && (own_shape || !takes(refused.schema)) {
        return diagnostic;
    }
    // An entry whose own key is misspelled must be corrected first.
    if translation.path.contains(".retry.") && refused.node.get("retry").is_none() {
        return diagnostic;
    }
    let name = path.pop().unwrap_or_default();
    let way = RelativePath::between(&refused.segments, &path);
    if way.up > 0 || way.down > 0 {
        return match way.pointer(&name, report.document) {
            Some(to) => match (translation.value, host_ports(refused, target, node)) {
                (Some(value), Some(advice)) => {
                    // Braces have no room for a comment.
                    let first = refused.node.entries().first().map(|first| first.key_span.start);
                    let in_block = first == Some(refused.node.span.start);
                    report.write_instead(diagnostic.note(advice), &at, &[(to, value)], in_block)
                }
                (value, _) => report.move_entry(diagnostic, &at, &to, value),
            },
            None => diagnostic,
        };
    }
    let known = refused.schema.keys(&refused.segments);
    let other = refused.node.entries().iter().filter(|entry| entry.key != key && !known.contains(&entry.key));
    let meant = |entry: &Entry| suggest::nearest(&entry.key, known.iter().map(String::as_str)) == Some(&name);
    if other.into_iter().any(meant) {
        return diagnostic;
    }
    match (refused.node.get(&name), translation.value) {
        (Some(_), _) => report.comment_out(diagnostic, &at),
        (None, Some(value)) => report.replace(diagnostic, &at, &name, &value),
        (None, None) => {
            let safety = if alike { Safety::Safe } else { Safety::Unsafe };
            report.rename(diagnostic, &at, &name, safety)
        }
    }
}

/// The ways to all levels that know a key, nearest first; distant ones only if an enclosing map contains them.
fn ways(schema: &Schema, place: &[String], key: &str) -> Vec<RelativePath> {
    let mut ways: Vec<RelativePath> = schema
        .levels
        .iter()
        .filter(|level| level.keys.iter().any(|known| known == key))
        // `type` is a key at many places; that of a parameter is not meant.
        .filter(|level| !place.is_empty() || level.path.first().is_none_or(|first| first != "params"))
        // `memory` of `retry` is a factor and `gpu` of `idle` a share; amounts are those of `resources`.
        .filter(|level| {
            !level
                .path
                .last()
                .is_some_and(|last| [("memory", "retry"), ("gpu", "idle")].contains(&(key, last.as_str())))
        })
        .map(|level| RelativePath::between(place, &level.path))
        .filter(|way| way.up + way.down > 0 && (way.up == 0 || way.down <= 1))
        .collect();
    ways.sort_by_key(RelativePath::length);
    // A name twice as far as the nearest is not intended.
    let nearest = ways.first().map_or(0, RelativePath::length);
    ways.retain(|way| way.length() <= nearest);
    ways.truncate(PLACES);
    ways
}

fn words(ways: &[&RelativePath], place: &[String], report: &Report<'_>) -> String {
    let mut words: Vec<String> = vec![];
    for way in ways {
        let word = way.words(place, report.document);
        if !words.contains(&word) {
            words.push(word);
        }
    }
    place::either(&words)
}

/// The most similar key of the levels below this one and of those around it.
fn find_elsewhere<'a>(schema: &'a Schema, place: &[String], key: &str) -> Option<(&'a str, RelativePath)> {
    let candidates = schema.levels.iter().filter_map(|level| {
        let way = RelativePath::between(place, &level.path);
        let straight = way.up == 0 || way.down == 0;
        straight
            .then(|| suggest::nearest(key, level.keys.iter().map(String::as_str)).map(|name| (name, way)))?
    });
    candidates.min_by_key(|(_, way)| way.length())
}

/// Lists all known keys, if the map has none of them.
fn list_keys(keys: &[String]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    keys.join(", ")
}

/// The `backends` that the settings of a target are for.
fn backends_of(refused: &RefusedValue<'_>, key: &str) -> Option<String> {
    let has = |setting: &str| key == "backends" && refused.node.get(setting).is_some();
    // Tasks on Slurm run bundles by default.
    let known = [("slurm", "[oci, slurm]"), ("kubernetes", "[kubernetes]"), ("openpai", "[openpai]")];
    known.into_iter().find(|(setting, _)| has(setting)).map(|(_, backends)| backends.to_owned())
}

/// Reports a missing required key.
pub(super) fn missing(refused: &RefusedValue<'_>, key: &str, report: &mut Report<'_>) {
    let place = &refused.segments;
    let known = refused.schema.keys(place);
    let is_misspelled = |entry: &Entry| {
        !known.contains(&entry.key)
            && suggest::nearest(&entry.key, known.iter().map(String::as_str)) == Some(key)
    };
    if refused.node.entries().iter().any(is_misspelled) {
        // The unknown key has a finding, and becomes this one.
        return;
    }
    let first = refused.node.entries().first();
    let mut diagnostic =
        Diagnostic::error(codes::MISSING_KEY, format!("`{key}` is missing{}", place::within(place)));
    diagnostic = match (first, place.is_empty()) {
        // The span is the whole file.
        (Some(first), true) => diagnostic.at_place(report.key(&refused.at.key(&first.key)), ""),
        _ => diagnostic.at_place(report.key(&refused.at), ""),
    };
    let mut deeper = place.clone();
    deeper.push(key.to_owned());
    let example = refused.schema.at(&deeper).and_then(|part| part.get("examples")).and_then(|e| e.get(0));
    let example = example.map(|example| example.as_str().map_or_else(|| example.to_string(), str::to_owned));
    if let Some(example) = backends_of(refused, key).or(example) {
        diagnostic = diagnostic.note(format!("write for example `{key}: {example}`"));
    }
    if let Some(first) = first.filter(|_| place.is_empty() && key == "version") {
        // In block style only; the span of a flow map begins before its first key.
        if first.key_span.start == refused.node.span.start {
            let start = crate::source::Span { end: first.key_span.start, ..first.key_span };
            let here = crate::diagnostic::Location::Span(start);
            diagnostic = diagnostic.fix("write `version: 1`", here, "version: 1\n", Safety::Safe);
        }
    }
    let role = refused.node.get("roles").and_then(|roles| roles.entries().first());
    if let Some(role) = role.filter(|_| place.is_empty() && key == "name") {
        diagnostic = report.set(diagnostic, &refused.at.key("name"), role.key.as_str());
    }
    report.push(diagnostic);
}
