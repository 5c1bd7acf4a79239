//! A Dockerfile in a Compose file, as an `image` block: one stage of `FROM`, and steps.

use serde_json::{Map, Value as Json, json};

use crate::source::Span;

use super::super::super::nodes::string;
use super::super::super::words::{Word, split_plain};
use super::Service;

/// What a line of a Dockerfile becomes.
enum Becomes {
    /// Steps of the build.
    Steps(Vec<Json>),
    /// A field of the block.
    Field(&'static str, Json),
    /// Words behind the ENTRYPOINT.
    Arguments(Vec<String>),
    /// Nothing: the image has no use for it in a job.
    Nothing,
}

/// The block; `None` where a line of the text is refused. What is copied is below the context.
pub(super) fn block(
    text: &str,
    context: &str,
    part: Span,
    service: &mut Service<'_, '_, '_>,
) -> Option<Json> {
    let mut image = Map::new();
    let mut steps: Vec<Json> = Vec::new();
    for line in joined(text) {
        match instruction(&line, context, image.is_empty()) {
            Some(Becomes::Steps(more)) => steps.extend(more),
            Some(Becomes::Field(key, value)) => drop(image.insert(key.to_owned(), value)),
            Some(Becomes::Arguments(words)) if service.command.is_none() => {
                let words = words.into_iter().map(|word| string(part, word)).collect();
                service.command = Some((words, part));
            }
            Some(_) => {}
            None => {
                service.role.draft.refuse(
                    part,
                    format!("`{line}` of the Dockerfile in the Compose file"),
                    "write its text to a file, and name that as `dockerfile`",
                );
                return None;
            }
        }
    }
    if !steps.is_empty() {
        image.insert("steps".to_owned(), json!(steps));
    }
    Some(Json::Object(image))
}

/// The instructions, each on one line, without comments.
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines().map(str::trim_end).filter(|line| !line.trim_start().starts_with('#')) {
        let content = line.strip_suffix('\\').unwrap_or(line).trim();
        match lines.last_mut().filter(|_| is_open) {
            Some(last) => *last = format!("{last} {content}"),
            None if content.is_empty() => {}
            None => lines.push(content.to_owned()),
        }
        is_open = line.ends_with('\\');
    }
    lines
}

fn instruction(line: &str, context: &str, is_first: bool) -> Option<Becomes> {
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let words: Vec<String> = split_plain(rest).ok()?.iter().map(Word::text).collect();
    let list = serde_json::from_str::<Vec<String>>(rest).ok();
    let one = |step: Json| Some(Becomes::Steps(vec![step]));
    match name.to_ascii_uppercase().as_str() {
        "FROM" if is_first && words.len() == 1 => Some(Becomes::Field("from", json!(words[0]))),
        _ if is_first => None,
        "RUN" if !rest.starts_with("--") && !rest.contains("<<") && list.is_none() => {
            one(json!({ "run": rest }))
        }
        "COPY" => copy(&words, context),
        "ENV" => {
            let pairs: Option<Map<String, Json>> = words
                .iter()
                .map(|word| word.split_once('=').map(|(name, value)| (name.to_owned(), json!(value))))
                .collect();
            let [name, value @ ..] = &words[..] else { return None };
            one(json!({ "env": pairs.map_or_else(|| json!({ name: value.join(" ") }), Json::Object) }))
        }
        "WORKDIR" => one(json!({ "workdir": rest })),
        "USER" => one(json!({ "user": rest })),
        "ENTRYPOINT" => Some(Becomes::Field("entrypoint", json!(list?))),
        "CMD" => Some(Becomes::Arguments(list?)),
        "EXPOSE" | "HEALTHCHECK" | "LABEL" | "MAINTAINER" | "VOLUME" => Some(Becomes::Nothing),
        _ => None,
    }
}

/// `COPY [--chown=USER] [--from=IMAGE] FROM… TO`.
fn copy(words: &[String], context: &str) -> Option<Becomes> {
    let mut fields = Map::new();
    let flags = words.iter().take_while(|word| word.starts_with("--")).count();
    for word in &words[..flags] {
        let (name, value) = word.split_once('=')?;
        let key = match name {
            "--chown" => "owner",
            "--chmod" => "mode",
            "--from" => "image",
            _ => return None,
        };
        fields.insert(key.to_owned(), json!(value));
    }
    let (to, sources) = words[flags..].split_last().filter(|(_, sources)| !sources.is_empty())?;
    if sources.iter().any(|from| from.starts_with('[') || from.starts_with("<<")) {
        return None;
    }
    let below = |from: &String| {
        let from = from.trim_start_matches("./");
        let is_here = fields.contains_key("image") || context.is_empty() || context == ".";
        if is_here { from.to_owned() } else { format!("{context}/{from}") }
    };
    let step = |from: &String| {
        let mut fields = fields.clone();
        let path = below(from);
        fields.insert("from".to_owned(), json!(if path.is_empty() { "." } else { &path }));
        fields.insert("to".to_owned(), json!(to));
        json!({ "copy": fields })
    };
    Some(Becomes::Steps(sources.iter().map(step).collect()))
}
