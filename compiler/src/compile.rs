//! The passes in order: what the command line, the editor and the tests call.

mod broken;
mod idle_settings;
mod targets;

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use indexmap::IndexMap;
use jobc_schema::plan::{JobPlan, Plan, RolePlan, TargetPlan};
use jobc_schema::target::{GpuInjection, TargetGpus};
use jobc_schema::{BackendName, Job, Targets};

use crate::adjust::{Adjustments, adjust, count_all};
use crate::backend::{Content, Context, FilePart, Losses, Plugins};
use crate::diagnostic::{Code, Diagnostic, DocumentId, Location, Sink, codes};
use crate::document::Document;
use crate::expand::{Environment, Groups, Overrides, expand, merge_findings, with_groups};
use crate::files::Files;
use crate::import::Selection;
use crate::lock::{Lock, Locking};
use crate::lower::{BackendOutput, OnRefusal};
use crate::provenance::Provenance;
use crate::salvage::{is_about_names, salvage};
use crate::source::{SourceId, Sources, Span};
use crate::source_map::{SourceMap, SpanIndex};
use crate::{check, dockerfile, emit, import, lower, parse, resolve, template, validate};
use targets::choose_targets;

/// What to compile, and for which targets.
pub struct Request<'a> {
    /// The job file.
    pub job: SourceId,
    /// `targets.yaml`, where there is one.
    pub targets: Option<SourceId>,
    /// `--set NAME=VALUE`, in order.
    pub set: Vec<(String, String)>,
    /// `--params FILE`, in order.
    pub params: Vec<SourceId>,
    /// Which job of a file of another tool is read.
    pub selection: Selection,
    /// The targets requested by name; empty: the file's defaults, else all of the file, else
    /// [`DEFAULT_TARGET`](crate::built_in_targets::DEFAULT_TARGET).
    pub only_targets: Vec<String>,
    /// The target of the user's settings, used if none is requested.
    pub default_target: Option<DefaultTarget>,
    /// Whether the job will run on this host: for one target with the oci backend, which is the requested one, else the
    /// only such target among the file's defaults, else the built-in `local`.
    pub run_here: bool,
    /// Reads the GPUs of this host, if the job runs on it; called only if the job requests GPUs.
    pub gpus_here: Option<&'a dyn Fn() -> TargetGpus>,
    /// The requested backends; empty: all of each target.
    pub only_backends: Vec<BackendName>,
    /// What may be lost of a job.
    pub losses: Losses,
    /// The GPU setup in OCI bundles.
    pub gpu_injection: Option<GpuInjection>,
    /// Looks up an environment variable of the user, for the defaults of parameters; absent where it is not known who
    /// will build or start the job.
    pub environment: Option<Environment<'a>>,
    /// How `jobc.lock` is used.
    pub locking: Locking,
    /// The part of the job to run, if not all of it.
    pub adjustments: Adjustments,
    /// Files next to the job file.
    pub files: &'a dyn Files,
    /// Backends that are not built in.
    pub plugins: Option<&'a dyn Plugins>,
    /// The relative path from the output directory of a target to that of the job file, for the job with that name.
    pub to_job: &'a dyn Fn(&str) -> Utf8PathBuf,
}

impl<'a> Request<'a> {
    /// A job for the default targets of the built-in ones, without anything of this host or its user.
    pub fn new(job: SourceId, files: &'a dyn Files, to_job: &'a dyn Fn(&str) -> Utf8PathBuf) -> Self {
        Self {
            job,
            targets: None,
            set: Vec::new(),
            params: Vec::new(),
            selection: Selection::default(),
            only_targets: Vec::new(),
            default_target: None,
            run_here: false,
            gpus_here: None,
            only_backends: Vec::new(),
            losses: Losses::default(),
            gpu_injection: None,
            environment: None,
            locking: Locking::default(),
            adjustments: Adjustments::default(),
            files,
            plugins: None,
            to_job,
        }
    }
}

/// A target to use if none is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultTarget {
    /// Its name.
    pub name: String,
    /// Its origin, for messages.
    pub origin: String,
    /// Whether it also takes precedence over the default of the targets file, and must be known.
    pub overrides_file: bool,
}

/// The resolved jobs, with the source information that later passes need.
#[derive(Clone)]
pub struct Planning {
    /// One entry per matrix combination and target, combinations outermost.
    pub jobs: Vec<JobPlan>,
    /// How a refusal is met: [`OnRefusal::Skip`] for the default target, which was not selected.
    pub on_refusal: OnRefusal,
    /// Roles with fewer instances than in the file, with the number in the file.
    pub scaled: IndexMap<String, u32>,
    /// The images that the jobs name, as written, except those with a digest.
    pub images: BTreeSet<String>,
    document: Document,
    /// The combinations of roles with a matrix; the document has their places.
    groups: Groups,
    /// The format of another tool that the job file is in.
    format: Option<import::Format>,
    targets: Option<Document>,
}

/// One file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The path below the target's directory.
    pub path: Utf8PathBuf,
    /// Permission bits.
    pub mode: u32,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// All files of one job for one target.
#[derive(Clone, Debug)]
pub struct Output {
    /// The plan they were made from.
    pub job: JobPlan,
    /// The backends that wrote, with how many files each.
    pub backends: Vec<(BackendName, usize)>,
    /// The files: plan and source map first.
    pub artifacts: Vec<Artifact>,
}

/// Runs the passes up to the plan.
///
/// Returns nothing where the job has errors besides files that are absent; they are in the sink, located.
pub fn plan(sources: &mut Sources, request: &Request<'_>, sink: &mut Sink) -> Option<Planning> {
    let document = import::document(sources, request.job, request.files, sink);
    if document.is_none() && import::text_format(sources.get(request.job)).is_none() {
        broken::check_readable(sources, request.job, sink);
    }
    plan_document(document, sources, request, sink)
}

/// Runs the passes after the first up to the plan, on what [`parse::parse`] makes of the job file: for callers that
/// have the tree already.
pub fn plan_document(
    document: Option<Document>,
    sources: &mut Sources,
    request: &Request<'_>,
    sink: &mut Sink,
) -> Option<Planning> {
    let targets_document = request.targets.and_then(|id| parse::parse(sources, id, sink));
    let lock = Lock::read(request.locking, request.job, request.files, sources, sink);
    // Even if the lock is invalid, other errors are reported too.
    let lock = lock.unwrap_or_default();
    let document = document.and_then(|d| template::expand_templates(d, sources, request.files, &lock, sink));
    let format = import::text_format(sources.get(request.job));
    let format = format.or_else(|| document.as_ref().and_then(import::format_of));
    let original = document.clone().filter(|_| format.is_some());
    let document = document.and_then(|d| import::import(d, sources, request.files, &request.selection, sink));
    let targets = targets_document.as_ref().and_then(|d| validate::targets(d, sink));
    let planned = document
        .as_ref()
        .and_then(|document| decide(document, targets.as_ref(), &lock, sources, request, sink));
    let (document, groups) = document.map(with_groups).unzip();
    let groups = groups.unwrap_or_default();
    if let Some(document) = &document {
        silence(document, sink);
        if let Some(format) = format {
            import::in_its_words(format, sink);
        }
        merge_findings(&groups, sink);
        sink.locate(DocumentId::Job, document, sources);
    }
    if let (None, Some(original)) = (&document, &original) {
        // An OpenPAI job with errors.
        sink.locate(DocumentId::Job, original, sources);
    }
    if let Some(document) = &targets_document {
        sink.locate(DocumentId::Targets, document, sources);
    }
    drop_in_braces(sources, sink);
    template::show_uses(sources, sink);
    if sink.stops_the_plan() {
        return None;
    }
    let PlanSet { jobs, on_refusal, scaled } = planned?;
    let images = lock.into_requested();
    Some(Planning {
        jobs,
        on_refusal,
        scaled,
        images,
        document: document?,
        groups,
        format,
        targets: targets_document,
    })
}

/// The templates from Git that a job uses, if they are reachable through known files, with the place of each.
pub fn template_references(
    sources: &mut Sources,
    job: SourceId,
    files: &dyn Files,
) -> BTreeMap<String, Span> {
    let mut sink = Sink::new();
    let lock = Lock::read(Locking::Ignored, job, files, sources, &mut sink).unwrap_or_default();
    if let Some(document) = parse::parse(sources, job, &mut sink) {
        let _ = template::expand_templates(document, sources, files, &lock, &mut sink);
    }
    lock.into_requested_templates()
}

/// What passes 2 to 4 make of a document.
struct PlanSet {
    jobs: Vec<JobPlan>,
    on_refusal: OnRefusal,
    scaled: IndexMap<String, u32>,
}

/// Passes 2 to 4: a document to plans.
fn decide(
    document: &Document,
    targets: Option<&Targets>,
    lock: &Lock,
    sources: &mut Sources,
    request: &Request<'_>,
    sink: &mut Sink,
) -> Option<PlanSet> {
    let mut schema = Sink::new();
    let sound = validate::validate(document, &mut schema);
    // A file of another tool gets only this finding.
    let is_foreign = schema.diagnostics().iter().any(|found| found.code == codes::FOREIGN_FILE);
    let salvaged = if sound || is_foreign { None } else { salvage(document, schema.diagnostics()) };
    drop_same_cause(document, &mut schema, sink);
    sink.append(schema);
    if sound {
        validate::check_written(document, sources, sink);
        check::check_document(document, request.files, sink);
    }
    let (places, on_refusal) = choose_targets(targets, request, sink)?;
    let params =
        request.params.iter().filter_map(|&id| Some((id, parse::parse(sources, id, sink)?))).collect();
    let numbers = &request.adjustments.numbers[..];
    let overrides = Overrides { set: request.set.clone(), params, environment: request.environment, numbers };
    if let Some(left) = salvaged {
        let mut aside = Sink::new();
        plans(
            &left,
            &places[..places.len().min(1)],
            &overrides,
            &Lock::default(),
            sources,
            request,
            &mut aside,
        );
        aside.retain(is_about_names);
        sink.append(aside);
    }
    if !sound || (request.targets.is_some() && targets.is_none()) {
        return None;
    }
    let (jobs, scaled) = plans(document, &places, &overrides, lock, sources, request, sink);
    Some(PlanSet { jobs, on_refusal, scaled })
}

/// Passes 3 and 4: a sound document to one plan a combination and place.
fn plans(
    document: &Document,
    places: &[TargetPlan],
    overrides: &Overrides<'_>,
    lock: &Lock,
    sources: &mut Sources,
    request: &Request<'_>,
    sink: &mut Sink,
) -> (Vec<JobPlan>, IndexMap<String, u32>) {
    let mut variants = expand(document, sources, overrides, sink);
    let scaled = adjust(&mut variants, &request.adjustments, sink);
    let mut jobs = Vec::with_capacity(variants.len() * places.len());
    for variant in &variants {
        let substituted = variant.document != *document;
        if substituted && !validate::validate(&variant.document, sink) {
            continue;
        }
        let Some(job) = validate::job(&variant.document, sink) else { continue };
        for place in places {
            let errors = sink.error_count();
            let counted = count_all(variant, &|| gpus_of(place, request), sink);
            if sink.error_count() > errors {
                continue;
            }
            let of_host = counted.as_ref().and_then(|variant| validate::job(&variant.document, sink));
            let (variant, job) = (counted.as_ref().unwrap_or(variant), of_host.as_ref().unwrap_or(&job));
            let Some(mut plan) = resolve::resolve(job, variant, place, request.files, lock, sink) else {
                continue;
            };
            dockerfile::inspect_images(&mut plan, request.job, request.files, lock, sources, sink);
            check_for_place(job, &plan, request, sink);
            jobs.push(plan);
        }
    }
    if request.adjustments.no_gpu {
        // The user requested it.
        sink.retain(|d| d.code != codes::IDLE_GPU_IMAGE);
    }
    (jobs, scaled)
}

/// The GPUs of the host that a job runs on: of this one, or as the target of a single host declares them.
fn gpus_of(place: &TargetPlan, request: &Request<'_>) -> Option<TargetGpus> {
    let clusters = [BackendName::Kubernetes, BackendName::Openpai];
    if let Some(look) = request.gpus_here {
        return Some(look());
    }
    let one_host = !place.settings.backends.iter().any(|backend| clusters.contains(backend));
    place.settings.gpus.clone().filter(|_| one_host)
}

/// Keeps one finding for one value: the schema's of a word such as `yes`, not the parser's advice to quote it; the
/// parser's of `02`, with the number that is meant, not the schema's of a text.
fn drop_same_cause(document: &Document, schema: &mut Sink, sink: &mut Sink) {
    let span_of = |found: &Diagnostic| match &found.labels.first()?.place {
        Location::Span(span) => Some(*span),
        Location::Path { pointer, part, .. } => Some(document.span_of_cause(pointer, *part)),
        _ => None,
    };
    let spans = |sink: &Sink, codes: &[Code]| -> BTreeSet<Span> {
        let of_codes = sink.diagnostics().iter().filter(|found| codes.contains(&found.code));
        of_codes.filter_map(span_of).collect()
    };
    let refused = spans(schema, &[codes::WRONG_KIND, codes::NOT_ONE_OF]);
    let is_refused = |found: &Diagnostic| span_of(found).is_some_and(|span| refused.contains(&span));
    sink.retain(|found| found.code != codes::MISREAD || !is_refused(found));
    let zeros = spans(sink, &[codes::LEADING_ZERO]);
    schema.retain(|found| {
        found.code != codes::WRONG_KIND || span_of(found).is_none_or(|span| !zeros.contains(&span))
    });
    sink.for_each(|found| {
        if found.code == codes::LEADING_ZERO && is_refused(found) && found.fixes.len() > 1 {
            found.fixes.remove(0);
            // The last one is the decimal number.
            let edit = found.fixes.last().and_then(|fix| fix.edits.first());
            let number = edit.map(|edit| edit.text.clone()).unwrap_or_default();
            if let Some((what, _)) = found.message.split_once(": write ") {
                found.message = format!("{what}: write `{number}`");
            }
        }
    });
}

/// Drops what later passes find in values such as `{{ lr }}`, which the parser has reported and reads as an expression.
fn drop_in_braces(sources: &Sources, sink: &mut Sink) {
    let span_of = |found: &Diagnostic| found.labels.first()?.place.span();
    let is_ours = |found: &&Diagnostic| found.code == codes::KEY;
    let braces: Vec<Span> = sink
        .diagnostics()
        .iter()
        .filter(is_ours)
        .filter_map(span_of)
        .filter(|span| sources.slice(*span).starts_with("{{"))
        .collect();
    if braces.is_empty() {
        return;
    }
    let inside = |span: Span| {
        braces.iter().any(|it| it.source == span.source && it.start <= span.start && span.end <= it.end)
    };
    sink.retain(|found| found.code == codes::KEY || !span_of(found).is_some_and(inside));
}

/// Pass 4, against the GPUs of this host where the job is run on it: the plan itself names no host. That images have
/// digests is not required of a job that is about to be locked.
fn check_for_place(job: &Job, plan: &JobPlan, request: &Request<'_>, sink: &mut Sink) {
    let wants = |role: &RolePlan| role.gpus().is_some();
    let look = request.gpus_here.filter(|_| plan.roles.iter().any(wants));
    let locks = request.locking == Locking::Ignored && plan.target.settings.policy.is_some();
    if look.is_none() && !locks {
        return check::check(job, plan, request.files, sink);
    }
    let mut here = plan.clone();
    if let Some(look) = look {
        here.target.settings.gpus = Some(look());
    }
    if let Some(policy) = here.target.settings.policy.as_mut().filter(|_| locks) {
        // If the lock is ignored, it is about to be written.
        policy.require_digest = false;
        policy.require_signature = None;
    }
    check::check(job, &here, request.files, sink);
}

/// Takes out the warnings that the job file allows by `x-jobc-allow`.
fn silence(document: &Document, sink: &mut Sink) {
    let allowed = check::allowed(document);
    if !allowed.is_empty() {
        sink.retain(|d| d.severity == crate::diagnostic::Severity::Error || !allowed.contains(&d.code));
    }
}

/// Reports what the backends cannot express of every planned job, as [`lower_all`] does, and makes no files.
pub fn check_all(sources: &Sources, planned: &Planning, request: &Request<'_>, sink: &mut Sink) {
    for job in &planned.jobs {
        let context = context(job, &planned.jobs, request);
        lower::check(job, &request.only_backends, planned.on_refusal, &context, sink);
    }
    check_settings(planned, sink);
    finish_lowering(sources, planned, sink);
}

/// Reports the settings without effect of the targets that the jobs are planned for.
fn check_settings(planned: &Planning, sink: &mut Sink) {
    let Some(document) = &planned.targets else { return };
    let Some(targets) = validate::targets(document, &mut Sink::new()) else { return };
    let names: BTreeSet<&str> = planned.jobs.iter().map(|job| job.target.name.as_str()).collect();
    idle_settings::check(&targets, document, &Vec::from_iter(names), sink);
}

/// Checks a targets file without a job, and finds the places of the findings.
pub fn check_targets(document: &Document, sources: &Sources, sink: &mut Sink) {
    if let Some(targets) = validate::targets(document, sink) {
        let names: Vec<&str> = targets.targets.keys().map(String::as_str).collect();
        idle_settings::check(&targets, document, &names, sink);
    }
    sink.locate(DocumentId::Targets, document, sources);
}

/// Adds findings about planned jobs that only the caller could have, and finds their places.
pub fn report(sources: &Sources, planned: &Planning, findings: Vec<Diagnostic>, sink: &mut Sink) {
    for finding in findings {
        sink.push(finding);
    }
    finish_lowering(sources, planned, sink);
}

/// Lowers every planned job and reports what its backends cannot express; one list a job, in their order.
pub fn lower_all(
    sources: &Sources,
    planned: &Planning,
    request: &Request<'_>,
    sink: &mut Sink,
) -> Vec<Vec<BackendOutput>> {
    let one = |job: &JobPlan| {
        let context = context(job, &planned.jobs, request);
        lower::lower(job, &request.only_backends, planned.on_refusal, &context, sink)
    };
    let all = planned.jobs.iter().map(one).collect();
    check_settings(planned, sink);
    finish_lowering(sources, planned, sink);
    all
}

/// The inputs of a backend besides the plan.
fn context<'a>(job: &JobPlan, all_jobs: &'a [JobPlan], request: &Request<'a>) -> Context<'a> {
    Context {
        files: request.files,
        to_job: (request.to_job)(&job.name),
        gpu_injection: request.gpu_injection,
        losses: request.losses,
        plugins: request.plugins,
        all_jobs,
    }
}

/// Removes the findings that the job allows, and locates the others.
fn finish_lowering(sources: &Sources, planned: &Planning, sink: &mut Sink) {
    silence(&planned.document, sink);
    if let Some(format) = planned.format {
        import::in_its_words(format, sink);
    }
    merge_findings(&planned.groups, sink);
    sink.locate(DocumentId::Job, &planned.document, sources);
    if let Some(targets) = &planned.targets {
        sink.locate(DocumentId::Targets, targets, sources);
    }
}

/// Runs the passes after the plan: files as bytes.
pub fn build(sources: &Sources, planned: Planning, request: &Request<'_>, sink: &mut Sink) -> Vec<Output> {
    build_with(None, sources, planned, request, sink)
}

/// As above, with the provenance in the files if it is given.
pub fn build_with(
    provenance: Option<&Provenance>,
    sources: &Sources,
    planned: Planning,
    request: &Request<'_>,
    sink: &mut Sink,
) -> Vec<Output> {
    let mut lowered = lower_all(sources, &planned, request, sink);
    template::show_uses(sources, sink);
    if sink.has_errors() {
        return vec![];
    }
    if let Some(provenance) = provenance {
        for (job, outputs) in planned.jobs.iter().zip(&mut lowered) {
            provenance.stamp(job, outputs);
        }
    }
    let Planning { jobs, on_refusal, document, groups, .. } = planned;
    let spans = SpanIndex::new(&document, groups);
    jobs.into_iter()
        .zip(lowered)
        // A target without any output was skipped; a note has the reason.
        .filter(|(_, lowered)| on_refusal == OnRefusal::Fail || !lowered.is_empty())
        .map(|(job, lowered)| emit_job(job, lowered, &spans, sources))
        .collect()
}

fn emit_job(job: JobPlan, lowered: Vec<BackendOutput>, spans: &SpanIndex, sources: &Sources) -> Output {
    let mut files = Vec::new();
    let mut maps = Vec::new();
    let mut backends = Vec::new();
    for BackendOutput { backend, files: lowered } in lowered {
        backends.push((backend, lowered.len()));
        for file in lowered {
            let path = Utf8PathBuf::from(backend.as_str()).join(&file.path);
            let mut origins = file.origins;
            let text = match file.content {
                Content::Yaml(value) => emit::to_yaml(&value),
                Content::Json(value) => emit::to_json(&value),
                Content::Text(text) => text,
                Content::Bytes(bytes) => {
                    files.push(Artifact { path, mode: file.mode, bytes });
                    continue;
                }
                Content::Dockerfile(dockerfile) => {
                    let (text, lines) = dockerfile.render();
                    for origin in &mut origins {
                        if let FilePart::Line(instruction) = &mut origin.part {
                            *instruction = lines.get(*instruction as usize).copied().unwrap_or(1);
                        }
                    }
                    text
                }
            };
            maps.push((path.to_string(), origins));
            files.push(Artifact { path, mode: file.mode, bytes: text.into_bytes() });
        }
    }
    let plan = Plan { version: 1, jobs: vec![job] };
    let own =
        |path: &str, text: String| Artifact { path: path.into(), mode: 0o644, bytes: text.into_bytes() };
    let map = emit::to_json_rows(&SourceMap::new(&maps, spans, sources), 3);
    let mut artifacts = vec![own("plan.json", plan_json(&plan)), own("sourcemap.json", map)];
    artifacts.extend(files);
    let job = plan.jobs.into_iter().next().expect("the plan was made of one job");
    Output { job, backends, artifacts }
}

/// A plan as the text of `plan.json`.
pub fn plan_json(plan: &Plan) -> String {
    emit::to_json(plan)
}
