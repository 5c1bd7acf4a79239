//! Mistakes that are visible in the Dockerfile alone.

use jobc_dockerfile::{Copy, ImageOrStage, Instruction, Kind, Run, Runs, Source, Span, Stage};
use jobc_schema::reference::Parts;

use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::suggest;

use super::facts::Stages;
use super::request::Request;

/// Reports them in the order of the file.
pub(super) fn lint(stages: &Stages<'_>, request: &Request<'_>, sink: &mut Sink) {
    let lints = Lints { stages, request };
    for (number, stage) in stages.file.stages.iter().enumerate() {
        if let ImageOrStage::Image { reference, .. } = &stage.from
            && !stage.by_platform
        {
            lints.tag(reference, &stage.base, sink);
        }
        for instruction in &stage.instructions {
            match &instruction.kind {
                Kind::Copy(copy) => {
                    if let Some(from) = &copy.from {
                        lints.source(from, "COPY --from", number, sink);
                    }
                }
                Kind::Run(run) => {
                    let sources = instruction.sources();
                    for from in sources {
                        lints.source(from, "RUN --mount=from", number, sink);
                    }
                    lints.exec(run, instruction, sink);
                }
                Kind::Add(add) => lints.added(add, instruction, sink),
                _ => {}
            }
        }
    }
}

struct Lints<'a> {
    stages: &'a Stages<'a>,
    request: &'a Request<'a>,
}

impl Lints<'_> {
    fn tag(&self, image: &str, span: &Span, sink: &mut Sink) {
        let parts = Parts::of(image);
        let message = match parts.tag {
            _ if parts.digest.is_some() => return,
            None => format!("`FROM {image}` has no tag, so each build may use another image"),
            Some("latest") => {
                format!("the tag of `FROM {image}` can change, so each build may use another image")
            }
            Some(_) => return,
        };
        sink.push(
            Diagnostic::warning(codes::DOCKERFILE_TAG, message)
                .at_span(self.request.span(span), "")
                .note("write a version, or a digest: `IMAGE@sha256:…`"),
        );
    }

    /// The exec form starts no shell; a single string in it is usually meant as a command line.
    fn exec(&self, run: &Run, instruction: &Instruction, sink: &mut Sink) {
        if let Runs::Exec(words) = &run.command
            && let [word] = words.as_slice()
            && word.contains(' ')
        {
            let mut span = instruction.span.clone();
            span.start += instruction.text.find('[').unwrap_or_default();
            sink.push(
                Diagnostic::warning(
                    codes::DOCKERFILE_EXEC,
                    "`RUN [\"…\"]` uses the whole string as the program name",
                )
                .at_span(self.request.span(&span), "")
                .note("write the command without brackets, or each argument as a string of its own"),
            );
        }
    }

    /// A `--from` that names no stage, so the builder pulls an image.
    fn source(&self, from: &ImageOrStage, what: &str, number: usize, sink: &mut Sink) {
        let ImageOrStage::Image { reference, span, .. } = from else { return };
        if reference.contains(['/', ':', '@', '.']) {
            return;
        }
        let above = &self.stages.file.stages[..number];
        let names: Vec<&str> = above.iter().filter_map(|stage: &Stage| stage.name.as_deref()).collect();
        let message = format!("`{what}={reference}` names no stage, so an image `{reference}` is pulled");
        let mut found =
            Diagnostic::warning(codes::DOCKERFILE_FROM, message).at_span(self.request.span(span), "");
        if let Some(near) = suggest::nearest(reference, names.iter().copied()) {
            let place = Location::Span(self.request.span(span));
            found = found.note(format!("did you mean `{near}`?")).write(place, near);
        }
        sink.push(found.note(format!("for an image write its tag: `{reference}:VERSION`")));
    }

    fn added(&self, add: &Copy, instruction: &Instruction, sink: &mut Sink) {
        for source in &add.sources {
            let Source::Path(path) = source else { continue };
            let text = &path.text;
            let remote = ["http://", "https://", "ftp://"].iter().any(|scheme| text.starts_with(scheme));
            let git = text.split(['#', '?']).next().is_some_and(|url| url.strip_suffix(".git").is_some());
            if remote && !git && !instruction.text.contains("--checksum=") {
                sink.push(
                    Diagnostic::warning(
                        codes::DOCKERFILE_ADD,
                        format!(
                            "the content of `{text}` in `ADD` can change, so each build may use another file"
                        ),
                    )
                    .at_span(self.request.span(&path.span), "")
                    .note("write `ADD --checksum=sha256:… URL DEST` to get the same file in every build"),
                );
            }
        }
    }
}
