//! `COPY` and `ADD`.

use super::super::forms::{Copy, Heredoc, Source, Word};
use super::super::heredoc::opening;
use super::super::line::{Part, Raw};
use super::super::refusal::Rule;
use super::super::split;
use super::arguments::list;
use super::flags::{flag_bool, flag_value, unknown_flag};
use super::from::source;
use super::scope::Scope;

const COPY: &[&str] = &["from", "chown", "chmod", "link", "parents", "exclude"];
const ADD: &[&str] = &["chown", "chmod", "link", "exclude", "unpack", "checksum", "keep-git-dir"];

pub(super) fn read(
    keyword: Part<'_>,
    rest: Part<'_>,
    heredocs: &[Raw],
    scope: &mut Scope<'_>,
    add: bool,
) -> Option<Copy> {
    let (name, known) = if add { ("ADD", ADD) } else { ("COPY", COPY) };
    let (flags, rest) = split::flags(rest);
    let mut copy = Copy {
        sources: Vec::new(),
        target: Word::default(),
        from: None,
        chown: None,
        chmod: None,
        exclude: Vec::new(),
        parents: false,
        link: false,
        unpack: add,
    };
    let mut seen: Vec<&str> = Vec::new();
    for flag in &flags {
        if !known.contains(&flag.name.as_str()) {
            unknown_flag(name, flag, known, scope);
            return None;
        }
        if flag.name != "exclude" && seen.contains(&flag.name.as_str()) {
            let message = format!("there are two `--{}`", flag.name);
            scope.problems.wrong(flag.part.span(), message, "keep one");
            return None;
        }
        seen.push(&flag.name);
        match flag.name.as_str() {
            "from" => {
                let value = flag_value(name, flag, scope)?;
                copy.from = Some(source(&value.text, value.span, scope)?);
            }
            "chown" => copy.chown = Some(flag_value(name, flag, scope)?),
            "chmod" => copy.chmod = Some(flag_value(name, flag, scope)?),
            "exclude" => copy.exclude.push(flag_value(name, flag, scope)?),
            "link" => copy.link = flag_bool(name, flag, scope)?,
            "parents" => copy.parents = flag_bool(name, flag, scope)?,
            "unpack" => copy.unpack = flag_bool(name, flag, scope)?,
            // They apply to downloads, which are refused below.
            _ => {}
        }
    }
    let mut words = list(rest, scope)?;
    let target = words.pop();
    let (Some(target), false) = (target, words.is_empty()) else {
        scope.problems.wrong(
            if rest.is_empty() { keyword.span() } else { rest.span() },
            format!("`{name}` needs a source and a target"),
            &format!("write `{name} SOURCE… TARGET`"),
        );
        return None;
    };
    if !heredocs.is_empty() && opening(&target.text).is_some() {
        scope.problems.wrong(
            target.span,
            "a heredoc cannot be the target",
            &format!("write `{name} <<EOF TARGET`"),
        );
        return None;
    }
    copy.target = target;
    for word in words {
        let heredoc =
            opening(&word.text).and_then(|opening| heredocs.iter().find(|raw| raw.name == opening.name));
        if let Some(raw) = heredoc {
            copy.sources.push(Source::Heredoc(Heredoc {
                name: raw.name.clone(),
                content: raw.text(),
                expand: raw.expand,
                span: raw.span.clone(),
            }));
            continue;
        }
        if add && is_remote(&word.text) {
            remote(&word, scope);
        } else if copy.from.is_none() && leaves_context(&word.text) {
            scope.problems.refuse_by(
                Rule::Outside,
                word.span.clone(),
                format!("`{}` is outside the build context", word.text),
                "choose a larger context, and write paths relative to it",
            );
        }
        copy.sources.push(Source::Path(word));
    }
    one_directory(&copy, scope);
    Some(copy)
}

/// Several sources need a directory to go to.
fn one_directory(copy: &Copy, scope: &mut Scope<'_>) {
    let text = &copy.target.text;
    let directory =
        ["/", "/.", "/.."].iter().any(|end| text.ends_with(end)) || [".", ".."].contains(&text.as_str());
    if copy.sources.len() > 1 && !directory && !text.contains(['$', '"', '\'', '\\']) {
        scope.problems.wrong(
            copy.target.span.clone(),
            format!("several sources cannot become one file `{text}`"),
            &format!("for a directory write `{text}/`"),
        );
    }
}

/// `ADD` of what is not here.
fn remote(word: &Word, scope: &mut Scope<'_>) {
    let text = word.text.as_str();
    if is_git(text) {
        scope.problems.unsupported(
            word.span.clone(),
            format!("`ADD` of the repository `{text}` is not supported"),
            "clone it in a `RUN`, or into the build context; `--builder docker` supports it",
        );
    } else {
        scope.problems.unsupported(
            word.span.clone(),
            format!("`ADD` of `{text}` is not supported: this builder only copies files from the context"),
            "download it in a `RUN` with curl and verify its checksum there; `--builder docker` supports it",
        );
    }
}

fn is_remote(text: &str) -> bool {
    is_url(text) || is_git(text)
}

/// Whether a path goes above where it begins.
fn leaves_context(path: &str) -> bool {
    let mut depth = 0_usize;
    for name in path.split('/') {
        match (name, depth) {
            ("" | ".", _) => {}
            ("..", 0) => return true,
            ("..", _) => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

fn is_url(text: &str) -> bool {
    ["http://", "https://", "ftp://"].iter().any(|scheme| text.starts_with(scheme))
}

fn is_git(text: &str) -> bool {
    let path = text.split(['#', '?']).next().unwrap_or_default();
    let ends = path.strip_suffix(".git").is_some();
    text.starts_with("git://")
        || text.starts_with("git@")
        || text.starts_with("ssh://")
        || (is_url(text) && ends)
}
