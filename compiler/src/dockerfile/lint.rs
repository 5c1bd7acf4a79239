//! Mistakes that can be seen in the Dockerfile alone.

use parse_dockerfile as read;
use read::{Command, Flag, Instruction, Source};

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::suggest;

use super::Places;
use super::expand::pairs;
use super::stages::{Base, Stages, is_platform};

/// Reports them in the order of the file.
pub(super) fn lint(file: &read::Dockerfile<'_>, stages: &Stages<'_, '_>, at: &Places, sink: &mut Sink) {
    for arg in file.global_args() {
        for (name, value) in pairs(&arg.arguments.value) {
            secret("ARG", &name, &value, &arg.arguments.span, at, sink);
        }
    }
    for (number, stage) in stages.list.iter().enumerate() {
        match &stage.base {
            Base::Stage(_) => {}
            Base::Image(image) => tag(image, &stage.at, at, sink),
            Base::Hidden(names) => hidden(names, stages, &stage.at, at, sink),
        }
        for instruction in &stage.instructions {
            match instruction {
                Instruction::Env(env) => {
                    for (name, value) in pairs(&env.arguments.value) {
                        secret("ENV", &name, &value, &env.arguments.span, at, sink);
                    }
                }
                Instruction::Arg(arg) => {
                    for (name, value) in pairs(&arg.arguments.value) {
                        secret("ARG", &name, &value, &arg.arguments.span, at, sink);
                    }
                }
                Instruction::Copy(copy) => copied_from(&copy.options, number, stages, at, sink),
                Instruction::Run(run) => mounted_from(run, number, stages, at, sink),
                Instruction::Add(add) => added(add, at, sink),
                _ => {}
            }
        }
    }
}

fn tag(image: &str, span: &std::ops::Range<usize>, at: &Places, sink: &mut Sink) {
    let name = image.rsplit('/').next().unwrap_or(image);
    let message = match name.split_once(':') {
        _ if image == "scratch" || image.contains('@') => return,
        None => format!("`FROM {image}` has no tag, so each build may take another image"),
        Some((_, "latest")) => format!("`FROM {image}` takes whatever is the latest when it is built"),
        Some(_) => return,
    };
    sink.push(
        Diagnostic::warning(codes::DOCKERFILE_TAG, message)
            .at_span(at.span(span), "")
            .note("write a version, or a digest: `IMAGE@sha256:…`"),
    );
}

fn hidden(
    names: &[String],
    stages: &Stages<'_, '_>,
    span: &std::ops::Range<usize>,
    at: &Places,
    sink: &mut Sink,
) {
    for name in names.iter().filter(|name| !is_platform(name)) {
        let mut found = Diagnostic::error(
            codes::DOCKERFILE_VARIABLE,
            format!("`FROM` uses `{name}`, which has no value"),
        )
        .at_span(at.span(span), "");
        if stages.declared.contains(name) {
            found = found.note(format!(
                "give it one: `ARG {name}=…` before the first `FROM`, or `args: {{{name}: …}}` in the job"
            ));
        } else if let Some(near) = suggest::nearest(name, stages.declared.iter().map(String::as_str)) {
            found = found.note(format!("did you mean `{near}`?"));
        } else {
            found = found.note(format!("declare it with `ARG {name}=…` before the first `FROM`"));
        }
        sink.push(found);
    }
}

/// Names that hold secrets, by how they end.
fn is_secret(name: &str) -> bool {
    const ENDINGS: &[&str] = &["TOKEN", "PASSWORD", "PASSWD", "SECRET", "KEY", "CREDENTIALS"];
    const OTHERS: &[&str] = &["PUBLIC_KEY", "SSH_KEY", "GPG_KEY", "HOST_KEY"];
    let name = name.to_ascii_uppercase();
    let word =
        |ending: &str| name.strip_suffix(ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'));
    ENDINGS.iter().any(|ending| word(ending)) && name != "KEY" && !OTHERS.iter().any(|other| word(other))
}

fn secret(
    keyword: &str,
    name: &str,
    value: &str,
    span: &std::ops::Range<usize>,
    at: &Places,
    sink: &mut Sink,
) {
    // A path or another variable gives nothing away.
    if !is_secret(name) || value.is_empty() || value.starts_with(['/', '$']) {
        return;
    }
    sink.push(
        Diagnostic::warning(
            codes::DOCKERFILE_SECRET,
            format!(
                "`{keyword} {name}` keeps a secret in the image, where everybody who pulls it can read it"
            ),
        )
        .at_span(at.span(span), "")
        .note(
            "read it in `RUN --mount=type=secret,id=…`, or hand it to the role: `env: {…: ${{ secrets.… }}}`",
        ),
    );
}

pub(super) fn value<'a>(options: &'a [Flag<'_>], name: &str) -> Option<&'a read::UnescapedString<'a>> {
    options.iter().find(|flag| flag.name.value == name).and_then(|flag| flag.value.as_ref())
}

fn copied_from(options: &[Flag<'_>], number: usize, stages: &Stages<'_, '_>, at: &Places, sink: &mut Sink) {
    if let Some(from) = value(options, "from") {
        source(&from.value, "COPY --from", &from.span, number, stages, at, sink);
    }
}

fn mounted_from(
    run: &read::RunInstruction<'_>,
    number: usize,
    stages: &Stages<'_, '_>,
    at: &Places,
    sink: &mut Sink,
) {
    for flag in run.options.iter().filter(|flag| flag.name.value == "mount") {
        let Some(options) = &flag.value else { continue };
        if let Some(from) = options.value.split(',').find_map(|option| option.strip_prefix("from=")) {
            source(from, "RUN --mount=from", &options.span, number, stages, at, sink);
        }
    }
    // The exec form does no shell's work; a lone string in it is most often meant as a command line.
    if let Command::Exec(items) = &run.arguments
        && items.value.len() == 1
        && items.value[0].value.contains(' ')
    {
        sink.push(
            Diagnostic::warning(
                codes::DOCKERFILE_EXEC,
                "`RUN [\"…\"]` takes the whole string as a program's name",
            )
            .at_span(at.span(&items.span), "")
            .note("write the command without brackets, or each argument as a string of its own"),
        );
    }
}

/// `--from`: an earlier stage, else an image that the builder pulls.
fn source(
    from: &str,
    what: &str,
    span: &std::ops::Range<usize>,
    number: usize,
    stages: &Stages<'_, '_>,
    at: &Places,
    sink: &mut Sink,
) {
    if from.contains('$') || stages.find(from, number).is_some() {
        return;
    }
    let later = stages.find(from, stages.list.len()).is_some() || from.parse::<usize>().is_ok();
    if later {
        let message = format!("`{what}={from}` names a stage that is not built before this one");
        sink.push(
            Diagnostic::error(codes::DOCKERFILE_FROM, message)
                .at_span(at.span(span), "")
                .note("a stage can only take from those above it"),
        );
        return;
    }
    if from.contains(['/', ':', '@', '.']) {
        return;
    }
    let names: Vec<&str> = stages.list[..number].iter().filter_map(|stage| stage.name.as_deref()).collect();
    let message = format!("`{what}={from}` names no stage, so an image `{from}` is pulled");
    let mut found = Diagnostic::warning(codes::DOCKERFILE_FROM, message).at_span(at.span(span), "");
    if let Some(near) = suggest::nearest(from, names.iter().copied()) {
        found = found.note(format!("did you mean `{near}`?"));
    }
    sink.push(found.note(format!("for an image write its tag: `{from}:VERSION`")));
}

fn added(add: &read::AddInstruction<'_>, at: &Places, sink: &mut Sink) {
    for path in &add.src {
        let Source::Path(path) = path else { continue };
        let remote = ["http://", "https://", "ftp://"].iter().any(|scheme| path.value.starts_with(scheme));
        let git = path.value.split(['#', '?']).next().is_some_and(|url| url.strip_suffix(".git").is_some());
        if remote && !git && value(&add.options, "checksum").is_none() {
            sink.push(
                Diagnostic::warning(
                    codes::DOCKERFILE_ADD,
                    format!("`ADD` takes whatever `{}` holds when it is built", path.value),
                )
                .at_span(at.span(&path.span), "")
                .note("write `ADD --checksum=sha256:… URL DEST`, so that the same file comes every time"),
            );
        }
    }
}
