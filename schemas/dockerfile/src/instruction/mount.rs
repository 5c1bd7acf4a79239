//! `RUN --mount=type=…,key=value,…`.

use super::super::forms::{Mount, MountKind, Sharing, Word};
use super::super::refusal::Span;
use super::super::split::Flag;
use super::from::source;
use super::scope::Scope;

const KEYS: &str = "`type`, `target`, `source`, `from`, `ro`, `rw`, `id`, `sharing`, `mode`, `uid`, `gid`, `size`, \
                    `required`, `env`";

/// The fields of a mount.
#[derive(Default)]
struct Fields {
    kind: Option<Word>,
    target: Option<Word>,
    source: Option<Word>,
    from: Option<Word>,
    id: Option<Word>,
    sharing: Option<Word>,
    mode: Option<Word>,
    uid: Option<Word>,
    gid: Option<Word>,
    size: Option<Word>,
    env: Option<Word>,
    read_only: Option<bool>,
    required: Option<(bool, Span)>,
}

/// Parses a mount.
pub(super) fn read(flag: &Flag<'_>, scope: &mut Scope<'_>) -> Option<Mount> {
    let span = flag.part.span();
    let fields = fields(flag, scope)?;
    let kind = fields.kind.as_ref().map_or("bind", |word| word.text.as_str()).to_ascii_lowercase();
    only_of_its_kind(&kind, &fields, scope)?;
    let mode = number(fields.mode.as_ref(), 8, scope)?;
    let uid = number(fields.uid.as_ref(), 10, scope)?;
    let gid = number(fields.gid.as_ref(), 10, scope)?;
    let from = match &fields.from {
        Some(word) => Some(source(&word.text, word.span.clone(), scope)?),
        None => None,
    };
    let read_only = fields.read_only.unwrap_or(matches!(kind.as_str(), "bind" | "secret"));
    // As in BuildKit, a target is relative to the working directory, which is also the default.
    let here = || Word { text: ".".to_owned(), span: span.clone() };
    let has_own_default = matches!(kind.as_str(), "secret" | "ssh");
    let target = fields.target.or_else(|| (!has_own_default).then(here));
    let kind = match kind.as_str() {
        "bind" => MountKind::Bind { from, source: fields.source },
        "cache" => {
            let sharing = match fields.sharing.as_ref().map(|word| word.text.to_ascii_lowercase()).as_deref()
            {
                None | Some("shared") => Sharing::Shared,
                Some("private") => Sharing::Private,
                Some("locked") => Sharing::Locked,
                Some(other) => {
                    let at = fields.sharing.map_or(span, |word| word.span);
                    let message = format!("unknown value `sharing={other}`");
                    scope.problems.wrong(at, message, "write `shared`, `private` or `locked`");
                    return None;
                }
            };
            MountKind::Cache { id: fields.id, sharing, from, source: fields.source, mode, uid, gid }
        }
        "tmpfs" => MountKind::Tmpfs {
            size: match fields.size {
                None => None,
                Some(word) => {
                    let Some(size) = bytes(&word.text) else {
                        scope.problems.wrong(
                            word.span,
                            format!("`{}` is not a size", word.text),
                            "such as `size=64m`",
                        );
                        return None;
                    };
                    Some(size)
                }
            },
        },
        "ssh" => MountKind::Ssh {
            id: fields.id,
            required: fields.required.is_some_and(|(required, _)| required),
            mode,
            uid,
            gid,
        },
        _ => {
            let Some(id) = fields.id.or(fields.source).or_else(|| target.as_ref().map(last)) else {
                scope.problems.wrong(span, "a secret needs a name", "write `id=NAME`");
                return None;
            };
            let required = fields.required.is_some_and(|(required, _)| required);
            MountKind::Secret { id, env: fields.env.map(|word| word.text), required, mode, uid, gid }
        }
    };
    Some(Mount { span, kind, target, read_only })
}

/// The keys and values.
fn fields(flag: &Flag<'_>, scope: &mut Scope<'_>) -> Option<Fields> {
    let Some(text) = flag.value.as_deref().filter(|text| !text.is_empty()) else {
        scope.problems.wrong(
            flag.part.span(),
            "`RUN --mount` has no value",
            "such as `--mount=type=cache,target=/root/.cache`",
        );
        return None;
    };
    // If quotes or escapes were removed, use the span of the whole flag.
    let exact = flag.value_part.text() == text;
    let mut found = Fields::default();
    let mut at = 0;
    for field in text.split(',') {
        let place = |start: usize, end: usize| {
            if exact { flag.value_part.slice(start, end).span() } else { flag.value_part.span() }
        };
        let (start, end) = (at, at + field.len());
        at = end + 1;
        let (key, value) = match field.split_once('=') {
            Some((key, value)) => {
                (key, Some(Word { text: value.to_owned(), span: place(start + key.len() + 1, end) }))
            }
            None => (field, None),
        };
        let span = place(start, end);
        let key = key.to_ascii_lowercase();
        let slot = match key.as_str() {
            "type" => &mut found.kind,
            "from" => &mut found.from,
            "source" | "src" => &mut found.source,
            "target" | "dst" | "destination" => &mut found.target,
            "id" => &mut found.id,
            "sharing" => &mut found.sharing,
            "mode" => &mut found.mode,
            "uid" => &mut found.uid,
            "gid" => &mut found.gid,
            "size" => &mut found.size,
            "env" => &mut found.env,
            "readonly" | "ro" | "readwrite" | "rw" | "required" => {
                let Some(yes) = value.as_ref().map_or(Some(true), |word| boolean(&word.text)) else {
                    scope.problems.wrong(
                        span,
                        format!("`{key}` must be `true` or `false`"),
                        "without a value it is `true`",
                    );
                    return None;
                };
                match key.as_str() {
                    "required" => found.required = Some((yes, span)),
                    "readonly" | "ro" => found.read_only = Some(yes),
                    _ => found.read_only = Some(!yes),
                }
                continue;
            }
            _ => {
                let message = match key.as_str() {
                    "" => "empty field between two commas or after the last comma".to_owned(),
                    key => format!("unknown key `{key}` of a mount"),
                };
                let help = format!("known keys: {KEYS}; do not write spaces around commas");
                scope.problems.wrong(if span.is_empty() { flag.part.span() } else { span }, message, &help);
                return None;
            }
        };
        let Some(word) = value.filter(|word| !word.text.is_empty()) else {
            scope.problems.wrong(span, format!("`{key}` has no value"), &format!("write `{key}=VALUE`"));
            return None;
        };
        *slot = Some(word);
    }
    Some(found)
}

/// Reports an unknown type, and keys that the type does not support.
fn only_of_its_kind(kind: &str, fields: &Fields, scope: &mut Scope<'_>) -> Option<()> {
    let allowed: &[&str] = match kind {
        "bind" => &["source", "from"],
        "cache" => &["source", "from", "id", "sharing", "mode", "uid", "gid"],
        "tmpfs" => &["size"],
        "secret" => &["source", "id", "env", "required", "mode", "uid", "gid"],
        "ssh" => &["id", "required", "mode", "uid", "gid"],
        _ => {
            let word = fields.kind.clone().unwrap_or_default();
            scope.problems.wrong(
                word.span,
                format!("unknown mount type `type={}`", word.text),
                "write `bind`, `cache`, `tmpfs`, `secret` or `ssh`",
            );
            return None;
        }
    };
    let present = [
        ("source", fields.source.as_ref().map(|word| &word.span)),
        ("from", fields.from.as_ref().map(|word| &word.span)),
        ("id", fields.id.as_ref().map(|word| &word.span)),
        ("sharing", fields.sharing.as_ref().map(|word| &word.span)),
        ("mode", fields.mode.as_ref().map(|word| &word.span)),
        ("uid", fields.uid.as_ref().map(|word| &word.span)),
        ("gid", fields.gid.as_ref().map(|word| &word.span)),
        ("size", fields.size.as_ref().map(|word| &word.span)),
        ("env", fields.env.as_ref().map(|word| &word.span)),
        ("required", fields.required.as_ref().map(|(_, span)| span)),
    ];
    for (key, span) in present {
        if let Some(span) = span
            && !allowed.contains(&key)
        {
            let list: Vec<String> = allowed.iter().map(|key| format!("`{key}`")).collect();
            scope.problems.wrong(
                span.clone(),
                format!("unsupported key `{key}` of a `{kind}` mount"),
                &format!("it supports `target`, `ro` and {}", list.join(", ")),
            );
            return None;
        }
    }
    if kind == "secret"
        && let (Some(_), Some(source)) = (&fields.id, &fields.source)
    {
        scope.problems.wrong(source.span.clone(), "a secret has `id` or `source`, not both", "keep `id`");
        return None;
    }
    Some(())
}

/// A number, if there is one; returns `None` for an invalid one, which is reported.
#[expect(clippy::option_option, reason = "absent and wrong are two things")]
fn number(word: Option<&Word>, radix: u32, scope: &mut Scope<'_>) -> Option<Option<u32>> {
    let Some(word) = word else { return Some(None) };
    if let Ok(number) = u32::from_str_radix(&word.text, radix) {
        return Some(Some(number));
    }
    let what = if radix == 8 { "mode in octal digits" } else { "number" };
    let message = format!("`{}` is not a valid {what}", word.text);
    scope.problems.wrong(word.span.clone(), message, "such as `mode=0755`, `uid=1000`");
    None
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A size in bytes: `64m`, `1GiB`, with units of 1024.
fn bytes(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let shift = match text[end..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

/// The last component of a path.
fn last(path: &Word) -> Word {
    let text = path.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    Word { text: text.to_owned(), span: path.span.clone() }
}
