//! `COPY` and `ADD`.

use super::super::forms::{Copy, Heredoc, Source, Word};
use super::super::heredoc::opening;
use super::super::line::{Part, Raw};
use super::super::refusal::{Refusal, Rule};
use super::super::remote::{Remote, RemoteError, Repository, is_commit_prefix};
use super::super::split;
use super::super::variables::invalid_mode;
use super::arguments::list;
use super::flags::{flag_bool, flag_value, unknown_flag};
use super::from::source;
use super::scope::Scope;
use jobc_schema::digest::Digest;
use jobc_schema::permissions::Permissions;

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
        unpack: None,
        checksum: None,
        keep_git_dir: None,
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
            "unpack" => copy.unpack = Some(flag_bool(name, flag, scope)?),
            "checksum" => copy.checksum = Some(flag_value(name, flag, scope)?),
            "keep-git-dir" => copy.keep_git_dir = Some(flag_bool(name, flag, scope)?),
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
        if add && let Some(remote) = Remote::parse(&word.text) {
            match remote {
                Ok(Remote::Repository(repository)) => check_repository(&word, &repository, &copy, scope),
                Ok(Remote::File(_)) => {}
                Err(error) => refuse_remote(&word, error, scope),
            }
        } else if !add && copy.from.is_none() && Remote::parse(&word.text).is_some() {
            let message = format!("`COPY` does not fetch `{}`", word.text);
            scope.problems.wrong(word.span.clone(), message, "write `ADD`");
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
    check_mode(&copy, scope);
    if let Some(checksum) = &copy.checksum {
        check_checksum(checksum, &copy, scope);
    }
    Some(copy)
}

/// Reports several sources whose destination is not a directory.
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

/// Checks a mode without variables.
fn check_mode(copy: &Copy, scope: &mut Scope<'_>) {
    let Some(mode) = copy.chmod.as_ref().filter(|mode| !mode.text.contains(['$', '"', '\'', '\\', '`']))
    else {
        return;
    };
    if mode.text.parse::<Permissions>().is_err() {
        scope.problems.wrong.push(invalid_mode(&mode.text, mode.span.clone()));
    } else if let Some(digits) = mode.text.strip_prefix("0o") {
        let message = format!("BuildKit and buildah do not read the mode `{}`", mode.text);
        let refusal = Refusal::new(mode.span.clone(), message).help(format!("write `{digits}`"));
        scope.problems.remarks.push(refusal.near(Some(digits)));
    }
}

/// Reports a URL that `ADD` cannot use.
fn refuse_remote(word: &Word, error: RemoteError, scope: &mut Scope<'_>) {
    let RemoteError { message, help, is_unsupported } = error;
    if is_unsupported {
        scope.problems.unsupported(word.span.clone(), message, help);
    } else {
        scope.problems.wrong(word.span.clone(), message, help);
    }
}

/// Checks that the query of a repository's URL does not contradict the flags.
fn check_repository(word: &Word, repository: &Repository, copy: &Copy, scope: &mut Scope<'_>) {
    let checksum = copy.checksum.as_ref().filter(|checksum| !checksum.text.contains('$'));
    let flags = [
        (
            "checksum",
            checksum.zip(repository.checksum.as_ref()).is_some_and(|(flag, query)| flag.text != *query),
        ),
        (
            "keep-git-dir",
            copy.keep_git_dir.zip(repository.keep_git_dir).is_some_and(|(flag, query)| flag != query),
        ),
    ];
    if let Some((key, _)) = flags.iter().find(|(_, differs)| *differs) {
        let message = format!("`--{key}` and `{key}` of the git URL differ");
        scope.problems.wrong(word.span.clone(), message, "keep one of them");
    }
}

/// Checks that `--checksum` has a single URL or repository. Sources with variables are checked once expanded.
fn check_checksum(checksum: &Word, copy: &Copy, scope: &mut Scope<'_>) {
    let remote = match copy.sources.as_slice() {
        [Source::Path(word)] if word.text.contains('$') => return,
        [Source::Path(word)] => Remote::parse(&word.text),
        _ => None,
    };
    let is_variable = checksum.text.contains('$');
    let (valid, help) = match remote {
        None => {
            scope.problems.wrong(
                checksum.span.clone(),
                "`--checksum` needs a single URL or repository as the source",
                "leave it out for files of the context, and write one `ADD` for each URL",
            );
            return;
        }
        // Already reported.
        Some(Err(_)) => return,
        Some(Ok(Remote::File(_))) => (
            checksum.text.parse::<Digest>().is_ok(),
            "such as `--checksum=sha256:…` with 64 hexadecimal digits",
        ),
        Some(Ok(Remote::Repository(_))) => {
            (is_commit_prefix(&checksum.text), "for a repository write the commit in hexadecimal digits")
        }
    };
    if !valid && !is_variable {
        let message = format!("invalid checksum `{}`", checksum.text);
        scope.problems.wrong(checksum.span.clone(), message, help);
    }
}

/// Whether a path leaves the directory that it is relative to.
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
