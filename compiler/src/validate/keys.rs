//! Keys that are not known at their places, and keys that are missing.

use crate::diagnostic::{Diagnostic, Safety, codes};
use crate::suggest;

use super::foreign;
use super::place::{self, RelativePath};
use super::refused_value::RefusedValue;
use super::report::Report;
use super::schema::Schema;

/// Places that a message names when a key is at home in several.
const PLACES: usize = 3;

/// Reports a key that its map does not know: what was meant, or where the key belongs.
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

    let diagnostic = if let Some(advice) = foreign::find(place, key) {
        match advice.write {
            Some(target) => suggest_key(refused, key, target, advice, report),
            None => error("").note(advice.note),
        }
    } else if !straight().is_empty() {
        error(&format!("; it belongs {}", words(&straight(), place, report)))
    } else if let Some(near) = near {
        let near = near.to_owned();
        let diagnostic = error(&format!("; did you mean `{near}`?"));
        // Not over a key that is there already.
        match refused.node.get(&near) {
            None => report.rename(diagnostic, &at, &near, Safety::Safe),
            Some(_) => diagnostic.note(format!("`{near}` is written here as well")),
        }
    } else if !ways.is_empty() {
        error(&format!("; it is a key {}", words(&ways.iter().collect::<Vec<_>>(), place, report)))
    } else if let Some((name, way)) = find_elsewhere(refused.schema, place, key) {
        error(&format!("; did you mean `{name}` {}?", way.words(place, report.document)))
    } else {
        error("").note(format!("the keys known here are {}", list_keys(known)))
    };
    report.push(diagnostic);
}

/// A key as another tool spells it.
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
    let mut diagnostic = if way.up == 0 && way.down == 0 {
        let message = format!("{wrong}; write `{name}`");
        let diagnostic = Diagnostic::error(codes::UNKNOWN_KEY, message).at_place(report.key(&at), "");
        // A fix where the value can stay as it is, and not over a key that is there already.
        match refused.node.get(&name) {
            None if advice.note.is_empty() => report.rename(diagnostic, &at, &name, Safety::Safe),
            _ => diagnostic,
        }
    } else {
        let message = if name == key {
            format!("{wrong}; it belongs {}", way.words(place, report.document))
        } else {
            format!("{wrong}; write `{name}` {}", way.words(place, report.document))
        };
        Diagnostic::error(codes::UNKNOWN_KEY, message).at_place(report.key(&at), "")
    };
    if !advice.note.is_empty() {
        diagnostic = diagnostic.note(advice.note);
    }
    diagnostic
}

/// The ways to all levels that know a key, the nearest first; of far ones only those next to a map we are in.
fn ways(schema: &Schema, place: &[String], key: &str) -> Vec<RelativePath> {
    let mut ways: Vec<RelativePath> = schema
        .levels
        .iter()
        .filter(|level| level.keys.iter().any(|known| known == key))
        .map(|level| RelativePath::between(place, &level.path))
        .filter(|way| way.up + way.down > 0 && (way.up == 0 || way.down <= 1))
        .collect();
    ways.sort_by_key(RelativePath::length);
    // What is twice as far as the nearest is not meant.
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

/// The nearest key of the levels below this one and of those around it.
fn find_elsewhere<'a>(schema: &'a Schema, place: &[String], key: &str) -> Option<(&'a str, RelativePath)> {
    let candidates = schema.levels.iter().filter_map(|level| {
        let way = RelativePath::between(place, &level.path);
        let straight = way.up == 0 || way.down == 0;
        straight
            .then(|| suggest::nearest(key, level.keys.iter().map(String::as_str)).map(|name| (name, way)))?
    });
    candidates.min_by_key(|(_, way)| way.length())
}

/// The known keys, all of them: who wrote none of them needs to see them.
fn list_keys(keys: &[String]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    keys.join(", ")
}

/// Reports a key that its map must have.
pub(super) fn missing(refused: &RefusedValue<'_>, key: &str, report: &mut Report<'_>) {
    let place = &refused.segments;
    let first = refused.node.entries().first();
    let mut diagnostic =
        Diagnostic::error(codes::MISSING_KEY, format!("`{key}` is missing{}", place::within(place)));
    diagnostic = match (first, place.is_empty()) {
        // The whole file would be marked.
        (Some(first), true) => diagnostic.at_place(report.key(&refused.at.key(&first.key)), ""),
        _ => diagnostic.at_place(report.key(&refused.at), ""),
    };
    let mut deeper = place.clone();
    deeper.push(key.to_owned());
    let example = refused.schema.at(&deeper).and_then(|part| part.get("examples")).and_then(|e| e.get(0));
    if let Some(example) = example {
        let example = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
        diagnostic = diagnostic.note(format!("write for example `{key}: {example}`"));
    }
    if let Some(first) = first.filter(|_| place.is_empty() && key == "version") {
        // In block style only; a flow map begins before its first key.
        if first.key_span.start == refused.node.span.start {
            let start = crate::source::Span { end: first.key_span.start, ..first.key_span };
            let here = crate::diagnostic::Place::Span(start);
            diagnostic = diagnostic.fix("write `version: 1`", here, "version: 1\n", Safety::Safe);
        }
    }
    report.push(diagnostic);
}
