//! Pass 5: a plan to files, by the selected backends.
//!
//! The job's requests are compared with what a backend can express before it runs, so that a rejection is reported at
//! the line of the request, with the same wording for every backend.

mod skipped;

use jobc_schema::distributed::MemberPart;
use jobc_schema::plan::JobPlan;
use jobc_schema::target::PluginName;
use jobc_schema::{BackendName, Pointer};

use crate::backend::capability::needs;
use crate::backend::{Backend, Context, File, Losses, Support};
use crate::backends;
use crate::diagnostic::{Code, Diagnostic, Location, Safety, Severity, Sink, codes};
use crate::plugin;
use crate::suggest;

/// The output of one backend for a job.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendOutput {
    /// The backend.
    pub backend: BackendName,
    /// Its files, relative to the backend's directory.
    pub files: Vec<File>,
}

/// How a rejection is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRefusal {
    /// It is an error: the user requested this backend.
    Fail,
    /// The backend is left out, with a note: the target is the default, which was not selected.
    Skip,
}

/// Lowers a job with its target's backends, in the order of the table.
///
/// `only` restricts the backends; a requested backend that this binary was built without is an error.
pub fn lower(
    job: &JobPlan,
    only: &[BackendName],
    on_refusal: OnRefusal,
    context: &Context<'_>,
    sink: &mut Sink,
) -> Vec<BackendOutput> {
    let make = |backend: &dyn Backend, sink: &mut Sink| {
        refusals(backend, job, context.losses, false, sink);
        if sink.has_errors() { vec![] } else { backend.lower(job, context, sink) }
    };
    each(job, only, on_refusal, context, sink, &make)
}

/// Reports the findings of [`lower`] without writing files, and without those that `jobc submit` has no reason for.
pub fn check(
    job: &JobPlan,
    only: &[BackendName],
    on_refusal: OnRefusal,
    context: &Context<'_>,
    sink: &mut Sink,
) {
    let look = |backend: &dyn Backend, sink: &mut Sink| {
        refusals(backend, job, context.losses, true, sink);
        if !sink.has_errors() {
            backend.check(job, context, sink);
        }
        vec![]
    };
    each(job, only, on_refusal, context, sink, &look);
}

/// Passes a job to each of its target's backends.
fn each(
    job: &JobPlan,
    only: &[BackendName],
    on_refusal: OnRefusal,
    context: &Context<'_>,
    sink: &mut Sink,
    run: &dyn Fn(&dyn Backend, &mut Sink) -> Vec<File>,
) -> Vec<BackendOutput> {
    let wanted = &job.target.settings.backends;
    let mut lowered = Vec::new();
    for &name in wanted.iter().filter(|name| only.is_empty() || only.contains(name)) {
        let Some(backend) = find(job, name, context, sink) else { continue };
        if !backend.applies(job) {
            continue;
        }
        let mut aside = Sink::new();
        let files = run(backend, &mut aside);
        if aside.has_errors() && on_refusal == OnRefusal::Skip && !holds_mistake(&aside) {
            sink.push(skipped::note(job, name, aside));
            continue;
        }
        let failed = aside.has_errors();
        sink.append(aside);
        if !failed {
            lowered.push(BackendOutput { backend: name, files });
        }
    }
    lowered
}

/// The backend with a name; reports why there is none.
fn find<'a>(
    job: &JobPlan,
    name: BackendName,
    context: &Context<'a>,
    sink: &mut Sink,
) -> Option<&'a dyn Backend> {
    let BackendName::Plugin(plugin) = name else {
        let backend = backends::find(name);
        if backend.is_none() {
            sink.push(not_built_in(job, name));
        }
        return backend.map(|backend| backend as &dyn Backend);
    };
    // An editor, which only checks the job, loads no plug-ins.
    match context.plugins?.find(plugin) {
        Ok(Some(backend)) => return Some(backend),
        Ok(None) => sink.push(no_plugin(job, plugin)),
        Err(why) => sink.push(plugin::failed(job, plugin, &why)),
    }
    None
}

/// Reports a name that is neither a backend of jobc nor a plug-in.
fn no_plugin(job: &JobPlan, name: PluginName) -> Diagnostic {
    let text = name.as_str();
    let wanted = &job.target.settings.backends;
    let index = wanted.iter().position(|wanted| wanted.as_str() == text).unwrap_or_default();
    let at = plugin::backend_at(job, index);
    let near = suggest::nearest(text, BackendName::ALL.iter().map(|known| known.as_str()));
    let found =
        Diagnostic::error(codes::NO_PLUGIN, format!("unknown backend `{text}`")).at_place(at.clone(), "");
    match near {
        Some(near) => found
            .note(format!("did you mean `{near}`?"))
            .fix(format!("write `{near}`"), at, near, Safety::Safe),
        None => found.note(format!(
            "a plug-in is the program `jobc-backend-{text}` on PATH, or the directory `backends/{text}` next to the targets file"
        )),
    }
}

/// Findings of a backend that are errors on every target, and so no reason to skip this one.
const MISTAKES: &[Code] = &[
    codes::UNKNOWN_LINUX_CAPABILITY,
    codes::BUILD_NO_APT,
    codes::BUILD_FILE_MISSING,
    codes::BUILD_PYTHON_VERSION,
    codes::BUILD_NO_PYTHON,
    codes::BUILD_NO_CONDA,
    codes::BUILD_LINE_BREAK,
    codes::BUILD_OUTSIDE_CONTEXT,
];

fn holds_mistake(sink: &Sink) -> bool {
    sink.diagnostics().iter().any(|d| d.severity == Severity::Error && MISTAKES.contains(&d.code))
}

/// Reports everything a backend cannot express, each at the line that requests it.
fn refusals(backend: &dyn Backend, job: &JobPlan, losses: Losses, can_submit: bool, sink: &mut Sink) {
    let mut shows_target = false;
    for (capability, place) in &needs(job) {
        let (why, lossy) = match backend.support_at(*capability, place, job) {
            Support::Full | Support::Plan => continue,
            Support::Submit(_) if can_submit => continue,
            Support::Lossy(why) => (why, true),
            Support::Submit(why) | Support::None(why) => (why, false),
        };
        let name = backend.name();
        let field = field(place);
        let diagnostic = if lossy && losses != Losses::Refuse {
            Diagnostic::warning(codes::DROPPED, format!("backend `{name}` does not express {field} exactly"))
        } else if losses == Losses::Drop {
            Diagnostic::warning(codes::DROPPED, format!("backend `{name}` leaves out {field}"))
        } else if lossy {
            Diagnostic::error(codes::LOSSY, format!("backend `{name}` cannot express {field} exactly"))
                .note("`--allow-lossy` accepts this and reports it as a warning")
        } else {
            Diagnostic::error(codes::REFUSED, format!("backend `{name}` cannot express {field}"))
        };
        let built_in = job.target.built_in;
        let is_refused = diagnostic.severity == Severity::Error;
        let mut found = match cause(job, place) {
            Some((setting, default)) => diagnostic.at_key(&setting, default),
            None => diagnostic.at_key(place, "requested here"),
        };
        found = found.note(why.as_str());
        if is_refused && !shows_target && (!built_in || why.contains("target")) {
            shows_target = true;
            found = show_target(found, job, name);
        }
        sink.push(found);
    }
}

/// Says with the first refusal where the target is from: the user may not know that a targets file is near, or that the
/// settings of a built-in target need one.
fn show_target(found: Diagnostic, job: &JobPlan, backend: BackendName) -> Diagnostic {
    let name = &job.target.name;
    if job.target.built_in {
        return found.note(format!(
            "the target `{name}` is built in: its settings go into `targets.yaml`, as `targets: {{{name}: {{backends: [{backend}], {backend}: {{…}}}}}}`"
        ));
    }
    let target = Pointer::ROOT.keys(["targets", name, "backends"]);
    found.at_place(Location::target(&target), "because of this target")
}

/// The setting to whose default a threshold of a role is equal, and that default in words: the user need not have
/// written the threshold.
fn cause(job: &JobPlan, place: &Pointer) -> Option<(Pointer, String)> {
    let segments: Vec<String> = place.segments().collect();
    let [_, name, block, key] = &segments[..] else { return None };
    let distributed = job.distributed.as_ref().filter(|_| block == "completion")?;
    let member = distributed.members.iter().find(|member| member.role == *name)?;
    let role = job.role(name)?;
    let is_success = key == "min_succeeded";
    let (setting, default) = match &distributed.elastic {
        Some(elastic) if is_success => ("elastic", elastic.min),
        Some(elastic) => ("elastic", role.instances.saturating_sub(elastic.min) + 1),
        None if is_success && member.part == MemberPart::Head => ("framework", 1),
        None => return None,
    };
    let value = if is_success { role.completion.min_succeeded } else { role.completion.min_failed };
    (value == Some(default)).then(|| {
        let text = format!("`completion.{key}` of role `{name}` is {default} by default with this");
        (Pointer::ROOT.keys(["distributed", setting]), text)
    })
}

/// Describes a place: `` `resources.gpu.share` of role `train` ``.
fn field(place: &Pointer) -> String {
    let segments: Vec<String> = place.segments().collect();
    match &segments[..] {
        [roles, role] if roles == "roles" => format!("the command of role `{role}`"),
        [roles, role, rest @ ..] if roles == "roles" => format!("`{}` of role `{role}`", rest.join(".")),
        [] => "the job".to_owned(),
        all => format!("`{}`", all.join(".")),
    }
}

fn not_built_in(job: &JobPlan, name: BackendName) -> Diagnostic {
    let message = format!("this `jobc` was built without the backend `{name}`");
    let place = Location::target(&Pointer::ROOT.keys(["targets", &job.target.name, "backends"]));
    Diagnostic::error(codes::NOT_BUILT_IN, message)
        .at_place(place, "requested here")
        .note(format!("build it with `--features {name}`, or remove `{name}` from the target's `backends`"))
}
