//! J0366: a command that repeats the ENTRYPOINT of its image, takes its place with its arguments, or is not read by it.

use jobc_schema::plan::ImageSource;
use jobc_schema::reference::Parts;
use jobc_schema::role::Run;

use crate::check::command::split;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Edit, Location, Safety, Severity, Sink, codes};

/// Public images by the end of their repositories, with the programs that their entrypoints start. The last form is
/// that of today.
const ENTRYPOINTS: [(&str, &[&str]); 6] = [
    ("vllm/vllm-openai", &["python3 -m vllm.entrypoints.openai.api_server", "vllm serve"]),
    ("huggingface/text-generation-inference", &["text-generation-launcher"]),
    ("huggingface/text-embeddings-inference", &["text-embeddings-router"]),
    ("ollama/ollama", &["ollama"]),
    ("prom/prometheus", &["prometheus"]),
    ("curlimages/curl", &["curl"]),
];

/// Reports `args: [vllm, serve, m]` where the image starts `vllm serve`, `run: [--model, m]`, and `args` of a shell.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(spec) = role.spec else { continue };
        let entrypoints = entrypoints(view, role);
        let found = match (&spec.run, &spec.args) {
            (Some(run), _) => arguments_alone(role, run, &entrypoints),
            (None, Some(args)) => {
                repeated(role, args, &entrypoints).or_else(|| unread(role, args, &entrypoints))
            }
            _ => None,
        };
        if let Some(found) = found {
            sink.push(found);
        }
    }
}

/// The entrypoints that the image of a role has or, if it is a public one, has had.
fn entrypoints(view: &View<'_>, role: &RoleView<'_>) -> Vec<Vec<String>> {
    let Some(image) = view.plan.image_of(role.plan) else { return vec![] };
    match &image.source {
        ImageSource::Build { entrypoint: Some(entrypoint), .. } => return vec![entrypoint.clone()],
        ImageSource::Dockerfile { entrypoint, .. } if !entrypoint.is_empty() => {
            return vec![entrypoint.clone()];
        }
        _ => {}
    }
    let Some((base, _)) = view.base(image) else { return vec![] };
    let name = Parts::of(base).name;
    let is =
        |known: &str| name.strip_suffix(known).is_some_and(|host| host.is_empty() || host.ends_with('/'));
    let known = ENTRYPOINTS.iter().find(|(repository, _)| is(repository)).map(|(_, known)| *known);
    let words = |line: &&str| line.split(' ').map(str::to_owned).collect();
    known.into_iter().flatten().map(words).collect()
}

/// Arguments that begin with words at the end of the entrypoint, or with its program.
fn repeated(role: &RoleView<'_>, args: &[String], entrypoints: &[Vec<String>]) -> Option<Diagnostic> {
    let (entrypoint, count) = entrypoints.iter().rev().find_map(|entrypoint| {
        let fits = |from: usize| {
            let tail = &entrypoint[from..];
            let is_option = tail.first().is_none_or(|word| word.starts_with('-'));
            (!is_option && starts_with(args, tail)).then_some(tail.len())
        };
        let starts_again = || {
            let is_program = starts_with(args, &entrypoint[..1]) && entrypoint[0] != "/bin/sh";
            is_program.then_some(1)
        };
        let count = (0..entrypoint.len()).find_map(fits).or_else(starts_again)?;
        Some((entrypoint.join(" "), count))
    })?;
    let message = format!(
        "`args` of role `{}` repeat `{}`, which the ENTRYPOINT of the image has already",
        role.plan.name,
        args[..count].join(" ")
    );
    Some(
        Diagnostic::warning(codes::ENTRYPOINT_MISFIT, message)
            .at(&role.run_at().index(0), "")
            .note(format!("`{entrypoint}` gets the arguments; write `run` to start another program"))
            .set(&role.run_at(), &args[count..]),
    )
}

/// Whether arguments begin with the words of a command: its program may be written without its directory and version.
fn starts_with(args: &[String], words: &[String]) -> bool {
    let program = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or_default();
        name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned()
    };
    args.len() >= words.len()
        && args
            .iter()
            .zip(words)
            .enumerate()
            .all(|(at, (a, b))| a == b || at == 0 && program(a) == program(b))
}

/// Arguments of an entrypoint in the shell form, which drops them.
fn unread(role: &RoleView<'_>, args: &[String], entrypoints: &[Vec<String>]) -> Option<Diagnostic> {
    let [entrypoint] = entrypoints else { return None };
    let [shell, option, script] = &entrypoint[..] else { return None };
    let reads =
        script.contains("$@") || script.contains("$*") || script.contains("$1") || script.contains("$0");
    if args.is_empty() || shell != "/bin/sh" || option != "-c" || reads {
        return None;
    }
    let message = format!(
        "`args` of role `{}` have no effect: the ENTRYPOINT of the image is text, which a shell runs without them",
        role.plan.name
    );
    Some(
        Diagnostic::warning(codes::ENTRYPOINT_MISFIT, message).at_key(&role.run_at(), "").note(
            "write the ENTRYPOINT in brackets, `ENTRYPOINT [\"program\"]`, or a `run`, which replaces it",
        ),
    )
}

/// A `run` of options, or of a name that only the program of the image knows.
fn arguments_alone(role: &RoleView<'_>, run: &Run, entrypoints: &[Vec<String>]) -> Option<Diagnostic> {
    let words = match run {
        Run::Argv(words) => words.clone(),
        Run::Script(text) => match &split(text)[..] {
            [only] if !text.trim().contains('\n') => only.words.clone(),
            _ => return None,
        },
    };
    let first = words.first()?;
    let is_option =
        first.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c == '-' || c.is_alphabetic()));
    let is_name = first.contains('/') && !first.starts_with(['/', '.', '$']) && matches!(run, Run::Argv(_));
    if !(is_option || is_name && !entrypoints.is_empty()) {
        return None;
    }
    let (severity, what) = if is_option {
        (Severity::Error, "an option")
    } else {
        (Severity::Warning, "which does not name a program of the image")
    };
    let message = format!("`run` of role `{}` begins with `{first}`, {what}", role.plan.name);
    let is_list = matches!(run, Run::Argv(_));
    let at = if is_list { role.run_at().index(0) } else { role.run_at() };
    let mut found = Diagnostic::new(codes::ENTRYPOINT_MISFIT, severity, message)
        .at(&at, "")
        .note("`run` replaces the command of the image; `args` are arguments of it")
        .fix("rename `run` to `args`", Location::key(&role.run_at()), "args", Safety::Unsafe);
    if !is_list && let Some(fix) = found.fixes.last_mut() {
        let text = serde_json::to_string(&words).ok()?;
        fix.message += ", and write it as a list";
        fix.edits.push(Edit { place: Location::value(&role.run_at()), text });
    }
    Some(found)
}
