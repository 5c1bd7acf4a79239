//! What a file is to jobc, by the schema that it names, by its name, and by its keys.
//!
//! No parser is used, since the text is often incomplete. editors/vscode/src/recognise.ts has the same rule, which
//! docs/reference/language-server.md describes, and recognize.json tries both.

use std::sync::LazyLock;

use camino::Utf8Path;
use jobc_compiler::suggest::nearest;

use crate::kind::Kind;
use crate::schema::Schema;

const JOB_NAMES: [&str; 6] = ["job.yaml", "job.yml", "job.json", "jobc.yaml", "jobc.yml", "jobc.json"];
const JOB_ENDINGS: [&str; 3] = [".job.yaml", ".job.yml", ".job.json"];

/// The languages of the VS Code extension: a text in one of them is a job, whatever its name.
const LANGUAGES: [&str; 2] = ["jobc", "jobc-json"];

/// Keys that only OpenPAI's jobs have.
const OPENPAI: [&str; 2] = ["taskRoles", "protocolVersion"];

/// Keys of other programs' files that are often called `job.yaml`.
const FOREIGN: [&str; 10] =
    ["apiVersion", "kind", "job", "jobs", "stages", "services", "steps", "pipelines", "hosts", "tasks"];

/// The fields of a role, and with those of a job the ones that people write at the top level.
static ROLE_FIELDS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| Schema::of(Kind::Job).fields("/$defs/Role"));
static JOB_FIELDS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| [Schema::of(Kind::Job).fields(""), ROLE_FIELDS.clone()].concat());
static TARGETS_FIELDS: LazyLock<Vec<&'static str>> = LazyLock::new(|| Schema::of(Kind::Targets).fields(""));

/// The kind of a text with a path in a language of the editor.
pub(crate) fn kind(language: &str, path: Option<&Utf8Path>, text: &str) -> Kind {
    let name = path.and_then(Utf8Path::file_name).unwrap_or_default().to_lowercase();
    let by_name = if matches!(name.as_str(), "targets.yaml" | "targets.yml") {
        Kind::Targets
    } else if JOB_NAMES.contains(&name.as_str()) || JOB_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        Kind::Job
    } else {
        Kind::Other
    };
    if is_asked_for(text) {
        return Kind::Job;
    }
    // VS Code chooses the language of such a name by itself.
    let chosen = by_name == Kind::Other && LANGUAGES.contains(&language);
    let extension = if path.is_some() { name.rsplit('.').next().unwrap_or_default() } else { "yaml" };
    if !chosen && !matches!(extension, "yaml" | "yml" | "json" | "jsonc") {
        return Kind::Other;
    }
    match schema(text) {
        Some(schema) if schema.contains("job.v1.schema.json") => return Kind::Job,
        Some(schema) if schema.contains("targets.v1.schema.json") => return Kind::Targets,
        Some(_) if !chosen => return Kind::Other,
        _ => {}
    }
    let keys = top_level_keys(text);
    let has = |key: &str| keys.contains(&key);
    if OPENPAI.iter().any(|key| has(key)) {
        Kind::Job
    } else if chosen {
        if has("targets") && !has("roles") { Kind::Targets } else { Kind::Job }
    } else if is_foreign(by_name, &keys, text) {
        Kind::Other
    } else if by_name == Kind::Other && has("version") && has_roles(text) {
        Kind::Job
    } else {
        by_name
    }
}

/// Whether a file of another tool has the comment that asks for findings: `# jobc: check`, in JSON behind `//`.
fn is_asked_for(text: &str) -> bool {
    let is_asking = |line: &str| {
        let line = line.trim();
        let comment = line.strip_prefix('#').or_else(|| line.strip_prefix("//"));
        comment.is_some_and(|comment| comment.trim() == "jobc: check")
    };
    text.lines().take(10).any(is_asking)
}

/// The schema that a text names in a modeline or in its key `$schema`; `none` means that it has none.
fn schema(text: &str) -> Option<&str> {
    text.lines().take(10).find_map(|line| {
        let (before, rest) = line.split_once("$schema")?;
        let before = before.trim_start_matches(['{', ' ', '\t', '"', '\'']);
        let is_named = before.is_empty() || before.starts_with('#');
        let rest = rest.trim_start_matches(['"', '\'', ' ']).strip_prefix(['=', ':']).filter(|_| is_named)?;
        rest.split(['"', '\'', ' ', '\t', ',', '}']).find(|word| !word.is_empty())
    })
}

/// Whether a file is a template of another program, a list, or has such keys: more of them are unknown than known, or
/// nearly known.
fn is_foreign(by_name: Kind, keys: &[&str], text: &str) -> bool {
    let is_template = || text.lines().any(|line| line.starts_with("{{") || line.starts_with("{%"));
    if is_list(text) || is_template() {
        return true;
    }
    let (own, known): (_, &[&str]) = match by_name {
        Kind::Targets => ("targets", &TARGETS_FIELDS),
        _ => ("roles", &JOB_FIELDS),
    };
    if keys.contains(&"uses") || keys.contains(&own) && !value(text, own).is_some_and(is_list) {
        return false;
    }
    let strangers = keys.iter().filter(|key| !is_near(key, known)).count();
    keys.iter().any(|key| FOREIGN.contains(key)) || strangers * 2 > keys.len()
}

fn is_near(key: &str, known: &[&str]) -> bool {
    known.contains(&key) || nearest(key, known.iter().copied()).is_some()
}

/// Whether `roles` has fields of roles, as far as it is written.
fn has_roles(text: &str) -> bool {
    let Some(roles) = value(text, "roles").filter(|roles| !is_list(roles)) else { return false };
    let keys: Vec<&str> = roles.split([',', '{', '}', '\n']).filter_map(key).map(|(key, _)| key).collect();
    keys.len() <= 1 || keys.iter().any(|key| is_near(key, &ROLE_FIELDS))
}

/// Whether a text begins with an entry of a list.
fn is_list(text: &str) -> bool {
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with('#') && *line != "---";
    let first = text.lines().map(str::trim).find(is_text).unwrap_or_default();
    first == "-" || first.starts_with("- ") || first.starts_with('[')
}

/// The keys at the top level.
fn top_level_keys(text: &str) -> Vec<&str> {
    top_level(text).map(|(key, _)| key).collect()
}

/// What follows a key at the top level, up to the next one.
fn value<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
    let mut after = top_level(text).skip_while(|(key, _)| *key != wanted);
    let (_, from) = after.next()?;
    let rest = &text[from..];
    Some(after.next().map_or(rest, |(key, to)| {
        let until = text[from..to].rfind(key).unwrap_or_default();
        &rest[..until]
    }))
}

/// The keys at the top level, each with the offset behind its colon. Those of JSON stand one level deep.
fn top_level(text: &str) -> Box<dyn Iterator<Item = (&str, usize)> + '_> {
    if text.trim_start().starts_with(['{', '/']) {
        return Box::new(top_level_of_json(text));
    }
    let mut at = 0;
    Box::new(text.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        let is_indented = line.starts_with([' ', '\t', '#', '-']);
        key(line).filter(|_| !is_indented).map(|(key, colon)| (key, start + colon))
    }))
}

/// The key that a line begins with, and the offset behind its colon.
fn key(line: &str) -> Option<(&str, usize)> {
    let start = line.len() - line.trim_start_matches([' ', '\t', '-']).len();
    let quote = line[start..].chars().next().filter(|first| matches!(first, '"' | '\''));
    let (name, after) = if let Some(quote) = quote {
        line[start + 1..].split_once(quote)?
    } else {
        let end = line[start..].find(':')? + start;
        (line[start..end].trim_end(), &line[end..])
    };
    let rest = after.trim_start().strip_prefix(':')?;
    let is_key = !name.is_empty() && !name.contains(['#', '{', '[']);
    (is_key && (rest.is_empty() || rest.starts_with(char::is_whitespace) || line[start..].starts_with('"')))
        .then_some((name, line.len() - rest.len()))
}

/// Strings, comments, brackets and colons are all the tokens that matter.
fn top_level_of_json(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let (mut at, mut depth, mut last) = (0, 0_usize, "");
    std::iter::from_fn(move || {
        while let Some(found) = text[at..].find(['"', '{', '}', '[', ']', ':', '/']) {
            let start = at + found;
            at = start + 1;
            match text.as_bytes()[start] {
                b'"' => {
                    let mut escaped = false;
                    let is_end = |c: char| {
                        let ends = matches!(c, '"' | '\n') && !escaped;
                        escaped = c == '\\' && !escaped;
                        ends
                    };
                    let length = text[at..].find(is_end).unwrap_or(text.len() - at);
                    last = &text[at..at + length];
                    at = (at + length + 1).min(text.len());
                }
                b'/' if text[at..].starts_with('/') => at += text[at..].find('\n').unwrap_or(text.len() - at),
                b'/' if text[at..].starts_with('*') => at += text[at..].find("*/").unwrap_or(text.len() - at),
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b':' if depth == 1 && !last.is_empty() => return Some((std::mem::take(&mut last), at)),
                _ => {}
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn which_files_are_jobs() {
        type Case = (String, String, Option<String>);
        let cases: BTreeMap<String, Vec<Case>> =
            serde_json::from_str(include_str!("recognize.json")).unwrap();
        for (why, cases) in cases {
            for (path, text, expected) in cases {
                let found = kind("yaml", Some(path.as_str().into()), &text);
                let expected = match expected.as_deref() {
                    Some("job" | "foreign") => Kind::Job,
                    Some("targets") => Kind::Targets,
                    _ => Kind::Other,
                };
                assert_eq!(found, expected, "{why}: {path}\n{text}");
            }
        }
    }

    #[test]
    fn the_language_of_the_editor_takes_precedence_over_the_content() {
        let check = |language: &str, name: &str, text: &str, expected: Kind| {
            assert_eq!(kind(language, Some(name.into()), text), expected, "{language} {name}: {text}");
        };
        check("jobc", "/a/train.txt", "", Kind::Job);
        check("jobc", "/a/deployment.yaml", "kind: Deployment\n", Kind::Job);
        check("jobc-json", "/a/settings", "{}", Kind::Job);
        check("jobc", "/a/targets.yaml", "", Kind::Targets);
        check("jobc", "/a/places.yaml", "version: 1\ntargets:\n  lab: {}\n", Kind::Targets);
        check("jobc-json", "/a/p.json", "{\"$schema\": \"../targets.v1.schema.json\"}", Kind::Targets);
        check("yaml", "/a/deployment.yaml", "kind: Deployment\n", Kind::Other);
        // VS Code chooses the language of these by their names.
        check("jobc", "/a/job.yaml", "apiVersion: batch/v1\nkind: Job\n", Kind::Other);
        check("jobc", "/a/job.yaml", "# yaml-language-server: $schema=none\n", Kind::Other);
    }

    #[test]
    fn a_long_file_is_read_in_no_time() {
        let yaml = format!("version: 1\n{}", "x: {a: [1, 2, 3]}\n".repeat(50_000));
        assert_eq!(top_level_keys(&yaml).len(), 50_001);
        let json = format!("{{{}", "\"x\": {\"a\": [1, 2, 3]},\n".repeat(50_000));
        assert_eq!(top_level_keys(&json).len(), 50_000);
    }
}
