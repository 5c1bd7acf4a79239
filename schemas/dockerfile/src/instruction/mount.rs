//! `RUN --mount=type=…,key=value,…`.

use super::super::forms::{Mount, MountField, MountKind, Sharing, Word};
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
    /// Values that are not text.
    values: Vec<(MountField, Word)>,
}

/// Parses a mount.
pub(super) fn read(flag: &Flag<'_>, scope: &mut Scope<'_>) -> Option<Mount> {
    let span = flag.part.span();
    let fields = fields(flag, scope)?;
    if let Some(word) = fields.kind.as_ref().filter(|word| word.text.contains('$')) {
        let message = format!("a variable as the type of a mount is not supported: `type={}`", word.text);
        scope.problems.unsupported(word.span.clone(), message, "write the type");
        return None;
    }
    let kind = fields.kind.as_ref().map_or("bind", |word| word.text.as_str()).to_ascii_lowercase();
    only_of_its_kind(&kind, &fields, scope)?;
    let from = match &fields.from {
        Some(word) => Some(source(&word.text, word.span.clone(), scope)?),
        None => None,
    };
    let read_only = matches!(kind.as_str(), "bind" | "secret");
    // As in BuildKit, a target is relative to the working directory, which is also the default.
    let here = || Word { text: ".".to_owned(), span: span.clone() };
    let has_own_default = matches!(kind.as_str(), "secret" | "ssh");
    let target = fields.target.or_else(|| (!has_own_default).then(here));
    let (mode, uid, gid) = (None, None, None);
    let kind = match kind.as_str() {
        "bind" => MountKind::Bind { from, source: fields.source },
        "cache" => MountKind::Cache {
            id: fields.id,
            sharing: Sharing::default(),
            from,
            source: fields.source,
            mode,
            uid,
            gid,
        },
        "tmpfs" => MountKind::Tmpfs { size: None },
        "ssh" => MountKind::Ssh { id: fields.id, required: false, mode, uid, gid },
        _ => {
            let Some(id) = fields.id.or(fields.source).or_else(|| target.as_ref().map(last)) else {
                scope.problems.wrong(span, "a secret needs a name", "write `id=NAME`");
                return None;
            };
            MountKind::Secret { id, env: None, required: false, mode, uid, gid }
        }
    };
    let mut mount = Mount { span, kind, target, read_only, deferred: Vec::new() };
    for (field, word) in fields.values {
        if word.text.contains('$') {
            mount.deferred.push((field, word));
        } else if let Err(refusal) = mount.fill(field, &word) {
            scope.problems.wrong.push(refusal);
            return None;
        }
    }
    Some(mount)
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
    for (start, end, field) in csv(text) {
        let exact = exact && end - start == field.len();
        let place = |from: usize, to: usize| {
            if exact { flag.value_part.slice(from, to).span() } else { flag.value_part.span() }
        };
        let (key, value) = match field.split_once('=') {
            Some((key, value)) => {
                (key, Some(Word { text: value.to_owned(), span: place(start + key.len() + 1, end) }))
            }
            None => (field.as_str(), None),
        };
        let span = place(start, end);
        let key = key.to_ascii_lowercase();
        let is_flag = matches!(key.as_str(), "readonly" | "ro" | "readwrite" | "rw" | "required");
        let value = match value {
            // Without a value it is true.
            None if is_flag => Some(Word { text: "true".to_owned(), span: span.clone() }),
            value => value.filter(|word| !word.text.is_empty()),
        };
        let slot = match key.as_str() {
            "type" => Ok(&mut found.kind),
            "from" => Ok(&mut found.from),
            "source" | "src" => Ok(&mut found.source),
            "target" | "dst" | "destination" => Ok(&mut found.target),
            "id" => Ok(&mut found.id),
            "sharing" => Err(MountField::Sharing),
            "mode" => Err(MountField::Mode),
            "uid" => Err(MountField::Uid),
            "gid" => Err(MountField::Gid),
            "size" => Err(MountField::Size),
            "env" => Err(MountField::Env),
            "required" => Err(MountField::Required),
            "readonly" | "ro" => Err(MountField::ReadOnly),
            "readwrite" | "rw" => Err(MountField::ReadWrite),
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
        let Some(word) = value else {
            scope.problems.wrong(span, format!("`{key}` has no value"), &format!("write `{key}=VALUE`"));
            return None;
        };
        match slot {
            Ok(slot) => *slot = Some(word),
            Err(field) => found.values.push((field, word)),
        }
    }
    Some(found)
}

/// The fields of a line of comma-separated values, each with its place. A field in double quotes may contain commas, and
/// double quotes that are doubled.
fn csv(text: &str) -> Vec<(usize, usize, String)> {
    let mut fields = Vec::new();
    let mut start = 0;
    loop {
        let rest = &text[start..];
        let (length, field) = if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.replace("\"\"", "\0\0").find('"').unwrap_or(quoted.len());
            let length = quoted[end..].find(',').map_or(rest.len(), |comma| 1 + end + comma);
            (length, quoted[..end].replace("\"\"", "\""))
        } else {
            let length = rest.find(',').unwrap_or(rest.len());
            (length, rest[..length].to_owned())
        };
        fields.push((start, start + length, field));
        start += length + 1;
        if start > text.len() {
            return fields;
        }
    }
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
    let words = [("source", &fields.source), ("from", &fields.from), ("id", &fields.id)];
    let words = words.into_iter().filter_map(|(key, word)| Some((key, &word.as_ref()?.span)));
    let values = fields.values.iter().map(|(field, word)| (name(*field), &word.span));
    for (key, span) in words.chain(values) {
        if !key.is_empty() && !allowed.contains(&key) {
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

/// The key of a value that some types do not have; empty for the others.
fn name(field: MountField) -> &'static str {
    match field {
        MountField::Mode => "mode",
        MountField::Uid => "uid",
        MountField::Gid => "gid",
        MountField::Size => "size",
        MountField::Sharing => "sharing",
        MountField::Env => "env",
        MountField::Required => "required",
        MountField::ReadOnly | MountField::ReadWrite => "",
    }
}

/// The last component of a path.
fn last(path: &Word) -> Word {
    let text = path.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    Word { text: text.to_owned(), span: path.span.clone() }
}
