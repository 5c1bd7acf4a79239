//! A user's own Dockerfile: read for what it tells about the image, its mistakes shown at their lines.
//!
//! Nothing is rewritten and nothing is run. What cannot be known without a build, such as what a base image sets,
//! stays absent.

mod context;
mod expand;
mod heredoc;
mod images;
mod lint;
mod locked;
mod stages;
mod syntax;
#[cfg(test)]
mod tests;

use camino::Utf8Path;
use indexmap::IndexMap;
use jobc_schema::Pointer;
use parse_dockerfile as read;

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::files::Files;
use crate::lock::Lock;
use crate::source::{SourceId, Span};
use crate::suggest;

pub use images::inspect_images;

/// A Dockerfile, and how the job builds it.
pub struct Request<'a> {
    /// The file's text in the sources.
    pub source: SourceId,
    /// The text.
    pub text: &'a str,
    /// The build context, relative to the job file.
    pub context: &'a Utf8Path,
    /// The stage to build; the last one where absent.
    pub target: Option<&'a str>,
    /// Build arguments the job gives.
    pub args: &'a IndexMap<String, String>,
    /// Where the job file declares the image: `target` and `args` stand below.
    pub declared_at: &'a Pointer,
    /// Files beside the job file.
    pub files: &'a dyn Files,
    /// The digests of `jobc.lock`.
    pub lock: &'a Lock,
}

/// What a Dockerfile tells about the image it builds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The image that the built stage stands on in the end; absent where a variable hides it.
    pub base: Option<String>,
    /// `ENV` values of the built stage and those below it, with known variables filled in.
    pub env: IndexMap<String, String>,
    /// `USER`.
    pub user: Option<String>,
    /// `WORKDIR`, joined over its instructions.
    pub workdir: Option<String>,
    /// `ENTRYPOINT` as arguments; the shell's where it is written as a command line.
    pub entrypoint: Option<Vec<String>>,
    /// `CMD`, in the same form.
    pub cmd: Option<Vec<String>>,
    /// `EXPOSE`, as written.
    pub ports: Vec<String>,
    /// Images that the file names and `jobc.lock` has, each with its digest.
    pub locked: IndexMap<String, String>,
}

/// Reads a Dockerfile and reports its mistakes; nothing where it cannot be read or has no such stage.
pub fn inspect(request: &Request<'_>, sink: &mut Sink) -> Option<Facts> {
    // The parser leaves a byte order mark out and then counts without it.
    let mark = request.text.len() - request.text.trim_start_matches('\u{feff}').len();
    let text = heredoc::blank(&request.text[mark..]);
    let at = Places { source: request.source, shift: mark };
    let file = match read::parse(&text) {
        Ok(file) => file,
        Err(error) => {
            sink.push(syntax::diagnose(&error, &text, &at));
            return None;
        }
    };
    let stages = stages::read(&file, request.args);
    lint::lint(&file, &stages, &at, sink);
    context::check(&stages, request, &at, sink);
    unknown_arguments(request, &stages, sink);
    let chosen = stages.choose(request.target).or_else(|| {
        sink.push(no_stage(request, &stages));
        None
    })?;
    let locked = locked::locked(&stages, request.lock, &at, sink);
    Some(Facts { locked, ..stages.facts(chosen) })
}

/// Turns the parser's positions into places of the source.
struct Places {
    source: SourceId,
    shift: usize,
}

impl Places {
    fn span(&self, range: &std::ops::Range<usize>) -> Span {
        Span::new(self.source, range.start + self.shift, range.end + self.shift)
    }
}

fn no_stage(request: &Request<'_>, stages: &stages::Stages<'_, '_>) -> Diagnostic {
    let target = request.target.unwrap_or_default();
    let names = || stages.list.iter().filter_map(|stage| stage.name.as_deref());
    let mut found =
        Diagnostic::error(codes::DOCKERFILE_STAGE, format!("the Dockerfile has no stage `{target}`"))
            .at(&request.declared_at.key("target"), "to be built");
    if let Some(near) = suggest::nearest(target, names()) {
        found = found.note(format!("did you mean `{near}`?"));
    }
    let list = suggest::list(names());
    found.note(if list.is_empty() {
        "no stage has a name; write `FROM … AS NAME`".to_owned()
    } else {
        format!("stages: {list}")
    })
}

/// Arguments that the builder takes without an `ARG`.
const PREDEFINED: &[&str] =
    &["HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY", "SOURCE_DATE_EPOCH"];

fn unknown_arguments(request: &Request<'_>, stages: &stages::Stages<'_, '_>, sink: &mut Sink) {
    for name in request.args.keys() {
        let predefined = PREDEFINED.iter().any(|known| name.eq_ignore_ascii_case(known));
        if predefined || name.starts_with("BUILDKIT_") || stages.declared.contains(name) {
            continue;
        }
        let mut found = Diagnostic::warning(
            codes::DOCKERFILE_ARGUMENT,
            format!("the Dockerfile has no `ARG {name}`, so the argument does nothing"),
        )
        .at_key(&request.declared_at.keys(["args", name]), "given here");
        if let Some(near) = suggest::nearest(name, stages.declared.iter().map(String::as_str)) {
            found = found.note(format!("did you mean `{near}`?"));
        }
        sink.push(found);
    }
}
