//! What `COPY` and `ADD` take from the build context.

use camino::{Utf8Path, Utf8PathBuf};
use parse_dockerfile as read;
use read::{Flag, Instruction, Source};

use crate::diagnostic::{Diagnostic, Sink, codes};

use super::stages::{Stage, Stages};
use super::{Places, Request};

/// Reports sources that are not in the context.
pub(super) fn check(stages: &Stages<'_, '_>, request: &Request<'_>, at: &Places, sink: &mut Sink) {
    for stage in &stages.list {
        for instruction in &stage.instructions {
            let (options, sources): (&[Flag<'_>], &[Source<'_>]) = match instruction {
                Instruction::Copy(copy) => (&copy.options, &copy.src),
                Instruction::Add(add) => (&add.options, &add.src),
                _ => continue,
            };
            if options.iter().any(|flag| flag.name.value == "from") {
                continue;
            }
            for source in sources {
                if let Source::Path(path) = source {
                    check_source(path, stage, request, at, sink);
                }
            }
        }
    }
}

fn check_source(
    path: &read::UnescapedString<'_>,
    stage: &Stage<'_, '_>,
    request: &Request<'_>,
    at: &Places,
    sink: &mut Sink,
) {
    let filled = stage.fill(&path.value);
    let whole = filled.is_whole();
    let source = filled.text;
    if !whole || source.contains("://") || source.starts_with("git@") {
        return;
    }
    let Some(inside) = below(&source) else {
        sink.push(
            Diagnostic::error(codes::DOCKERFILE_OUTSIDE, format!("`{source}` is outside the build context"))
                .at_span(at.span(&path.span), "")
                .note(format!(
                    "a builder sees `{}` only; choose a larger `context`, and write paths relative to it",
                    request.context
                )),
        );
        return;
    };
    if source.contains(['*', '?', '[']) {
        return;
    }
    let whole = join(request.context, &inside);
    if !request.files.exists(&whole) {
        let mut found =
            Diagnostic::warning(codes::DOCKERFILE_SOURCE, format!("there is no `{whole}` to copy"))
                .at_span(at.span(&path.span), "")
                .note(format!("paths are relative to the build context, `{}`", request.context));
        if source.contains(['"', '\'']) {
            found = found.note("a path with blanks needs the form `COPY [\"a b\", \"/to\"]`");
        }
        sink.push(found);
    }
}

/// A source below the context's root, which a leading `/` means too; nothing where `..` leads out.
fn below(source: &str) -> Option<Utf8PathBuf> {
    let mut path = Utf8PathBuf::new();
    for part in source.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if !path.pop() {
                    return None;
                }
            }
            part => path.push(part),
        }
    }
    Some(path)
}

/// The path relative to the job file.
fn join(context: &Utf8Path, inside: &Utf8Path) -> Utf8PathBuf {
    let context = context.strip_prefix(".").unwrap_or(context);
    let whole = context.join(inside);
    // `join` with nothing leaves a separator at the end.
    let text = whole.as_str().trim_end_matches('/');
    if text.is_empty() { ".".into() } else { text.into() }
}
