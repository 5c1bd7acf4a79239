//! Resolved values from the plan: bytes, derived names, assigned GPUs.

use jobc_compiler::backend::Content;
use jobc_compiler::compile::lower_all;
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::stdlib::models;
use jobc_schema::Bytes;
use jobc_schema::plan::{GpuAmount, GpuPlan, ImagePlan, ImageSource, JobPlan, PortPlan, RolePlan};
use jobc_schema::plural;
use lsp_types::Uri;

use crate::amounts;
use crate::analysis::{self, Choice};
use crate::selected::Selected;
use crate::session::Session;

/// The facts about a place, from the last valid plan.
pub(super) fn of(
    session: &Session<'_>,
    uri: &Uri,
    plans: &[JobPlan],
    place: &Selected<'_>,
) -> Option<String> {
    let job = plans.first()?;
    let path: Vec<&str> = place.path.iter().map(String::as_str).collect();
    let text = match &path[..] {
        ["name"] => objects(session, uri, plans),
        ["image"] => job.images.get("main").map(image).unwrap_or_default(),
        ["images", name] => job.images.get(*name).map(image).unwrap_or_default(),
        ["timeout"] => job.timeout_seconds.map(seconds).unwrap_or_default(),
        ["params", name] => job.params.get(*name).map(|value| format!("is `{value}`")).unwrap_or_default(),
        ["matrix", ..] => matrix(plans),
        ["distributed", ..] => distributed(job),
        ["roles", role] => whole_role(job, job.declared_role(role)?),
        ["roles", role, "matrix", ..] => combinations(job, role),
        ["roles", role, rest @ ..] => of_role(job, job.declared_role(role)?, rest),
        _ => String::new(),
    };
    Some(text).filter(|text| !text.is_empty())
}

fn of_role(job: &JobPlan, role: &RolePlan, rest: &[&str]) -> String {
    let resources = &role.resources;
    match rest {
        ["instances"] => tasks(role),
        ["image", ..] => job.image_of(role).map(image).unwrap_or_default(),
        ["resources"] => amounts::of_role(role),
        ["resources", "cpu"] => {
            resources.cpu_millis.map(|millis| cpus(millis, role.instances)).unwrap_or_default()
        }
        ["resources", "memory"] => bytes(resources.memory_bytes, role.instances),
        ["resources", "shm"] => bytes(resources.shm_bytes, role.instances),
        ["resources", "disk"] => bytes(resources.disk_bytes, role.instances),
        ["resources", "hugepages", size] => {
            bytes(resources.hugepages_bytes.get(*size).copied(), role.instances)
        }
        ["resources", "gpu", ..] => {
            resources.gpu.as_ref().map(|gpu| gpus(gpu, role.instances)).unwrap_or_default()
        }
        ["resources", "ports", label] => role.port(label).map(port).unwrap_or_default(),
        ["timeout"] => role.timeout_seconds.map(seconds).unwrap_or_default(),
        ["grace_period"] => seconds(role.grace_period_seconds),
        ["retry", "backoff"] => role.retry.backoff_seconds.map(seconds).unwrap_or_default(),
        ["needs", ..] => stage(job, role),
        _ => String::new(),
    }
}

fn whole_role(job: &JobPlan, role: &RolePlan) -> String {
    let mut lines = vec![amounts::of_role(role), tasks(role)];
    lines.extend(job.image_of(role).map(|image| format!("image `{}`", image.reference)));
    lines.push(format!("other roles see its addresses as `JOBC_HOSTS_{}`", upper(&role.name)));
    let stage = stage(job, role);
    lines.extend(Some(stage).filter(|stage| !stage.is_empty()));
    lines.iter().map(|line| format!("* {line}")).collect::<Vec<_>>().join("\n")
}

fn tasks(role: &RolePlan) -> String {
    match role.instances {
        1 => format!("task `{}-0`", role.name),
        n => format!("tasks `{0}-0` … `{0}-{1}`", role.name, n - 1),
    }
}

fn stage(job: &JobPlan, role: &RolePlan) -> String {
    let layer = job.stages.iter().position(|layer| layer.contains(&role.name));
    let several = job.stages.len() > 1;
    layer.filter(|_| several).map(|n| format!("stage {} of {}", n + 1, job.stages.len())).unwrap_or_default()
}

fn bytes(each: Option<u64>, instances: u32) -> String {
    let Some(each) = each else { return String::new() };
    let one = format!("{} bytes, {}", each, Bytes(each));
    if instances == 1 {
        return one;
    }
    format!("{one}; {} in all {instances} instances", Bytes(each.saturating_mul(instances.into())))
}

fn cpus(millis: u64, instances: u32) -> String {
    let one = format!("{millis}m, {}", amounts::cpus(millis));
    if instances == 1 {
        return one;
    }
    format!("{one}; {} in all {instances} instances", amounts::cpus(millis.saturating_mul(instances.into())))
}

fn seconds(seconds: u64) -> String {
    plural(seconds, "second")
}

/// The GPUs of an instance, and the matching cards.
fn gpus(gpu: &GpuPlan, instances: u32) -> String {
    match gpu.amount() {
        GpuAmount::All => return "all GPUs of the host that runs the job".to_owned(),
        GpuAmount::Hidden => return "all GPUs are hidden from the role".to_owned(),
        GpuAmount::Count(_) | GpuAmount::AllOf(_) => {}
    }
    let what = if gpu.share.is_some() { "slices" } else { "GPUs" };
    let number = |index: u32| gpu.first + index;
    let last = number(gpu.count * instances - 1);
    let mut lines = vec![match (gpu.count * instances, instances) {
        (1, _) => format!("logical number {}", gpu.first),
        (_, 1) => format!("logical numbers {} to {last}", gpu.first),
        (all, n) => format!(
            "logical numbers {} to {last}: instance `i` of {n} has {} from `{} + i × {}`, {all} {what} in all",
            gpu.first, gpu.count, gpu.first, gpu.count
        ),
    }];
    let bytes = gpu.memory_bytes.or_else(|| gpu.share.as_ref().and_then(|share| share.memory_bytes));
    lines.extend(gpu.memory_bytes.map(|bytes| format!("at least {bytes} bytes, {}, on each", Bytes(bytes))));
    if let Some(share) = &gpu.share {
        lines.extend(share.memory_bytes.map(|bytes| format!("slices of {bytes} bytes, {}", Bytes(bytes))));
    }
    let cards = cards(gpu, bytes);
    if !cards.is_empty() {
        lines.push(format!("matching cards: {}", cards.join(", ")));
    }
    lines.iter().map(|line| format!("* {line}")).collect::<Vec<_>>().join("\n")
}

/// The cards of the table that match the request; without a condition, the list of all cards is useless.
fn cards(gpu: &GpuPlan, bytes: Option<u64>) -> Vec<String> {
    let version = |text: &str| jobc_compiler::stdlib::Version::parse(text);
    let least = gpu.compute_capability.as_deref().and_then(version);
    if gpu.models.is_empty() && bytes.is_none() && least.is_none() {
        return vec![];
    }
    let wanted: Vec<_> = gpu.models.iter().filter_map(|name| models::find(name)).collect();
    let mut found = vec![];
    for model in models::all() {
        if least.as_ref().is_some_and(|least| version(&model.cc).is_none_or(|has| has < *least)) {
            continue;
        }
        for size in model.variants.iter().map(|variant| variant.memory_gb) {
            let named = |it: &models::ModelMatch| {
                it.model.name == model.name && it.memory_gb.is_none_or(|gb| gb == size)
            };
            let large_enough = bytes.is_none_or(|bytes| size.saturating_mul(1 << 30) >= bytes);
            if (gpu.models.is_empty() || wanted.iter().any(named)) && large_enough {
                found.push(format!("{} {size}GB", model.name));
            }
        }
    }
    found
}

/// A port's number and its names.
pub(super) fn port(port: &PortPlan) -> String {
    let chosen = if port.auto { ", chosen by jobc" } else { "" };
    let shared = port.shared_base.map_or_else(String::new, |base| {
        format!("; where instances share an address, instance `i` has `{base} + i × {}`", port.count)
    });
    format!("port {}{chosen}{shared}, `JOBC_PORT_{}`", port.number, upper(&port.label))
}

/// The source and the reference of an image.
pub(super) fn image(image: &ImagePlan) -> String {
    match &image.source {
        ImageSource::Reference {} => format!("`{}`, unchanged", image.reference),
        ImageSource::Host { .. } => "this host's own root file system under an overlay".to_owned(),
        ImageSource::File { path } => format!("the image in `{path}`"),
        ImageSource::Build { from, .. } => format!("built as `{}` on `{from}`", image.reference),
        ImageSource::Dockerfile { path, .. } => format!("built as `{}` by `{path}`", image.reference),
    }
}

fn distributed(job: &JobPlan) -> String {
    let Some(plan) = &job.distributed else { return String::new() };
    format!(
        "{} in {}, rendezvous at port {} of the first",
        if plan.world_size == 1 { "1 process".to_owned() } else { format!("{} processes", plan.world_size) },
        plural(plan.instances, "instance"),
        plan.port
    )
}

/// The jobs of a matrix.
fn matrix(plans: &[JobPlan]) -> String {
    let target = plans.first().map(|job| &job.target.name);
    let jobs = plans.iter().filter(|job| Some(&job.target.name) == target);
    list(jobs.map(|job| {
        let values = job.matrix.iter().map(|(axis, value)| format!("{axis}={value}"));
        (job.name.as_str(), values.collect())
    }))
}

/// The groups of tasks of a role's matrix.
fn combinations(job: &JobPlan, role: &str) -> String {
    let of_role = job.roles.iter().filter_map(|known| Some((known, known.matrix.as_ref()?)));
    list(of_role.filter(|(_, matrix)| matrix.role == role).map(|(known, matrix)| {
        let values = matrix.values.iter().map(|(axis, value)| format!("{axis}={value}"));
        (known.name.as_str(), values.collect())
    }))
}

/// Names with the values of their combinations, one per line, up to a limit.
fn list<'a>(all: impl Iterator<Item = (&'a str, Vec<String>)>) -> String {
    let mut lines: Vec<String> =
        all.map(|(name, values)| format!("* `{name}`: {}", values.join(", "))).collect();
    let more = lines.len().saturating_sub(16);
    lines.truncate(16);
    if more > 0 {
        lines.push(format!("* and {more} more"));
    }
    lines.join("\n")
}

/// The objects with the name of the job, for each target.
fn objects(session: &Session<'_>, uri: &Uri, plans: &[JobPlan]) -> String {
    let (Some(open), Some(planned)) = (
        session.documents.get(uri),
        session.job(uri).and_then(|job| job.analysis.as_ref()?.planned.as_ref()),
    ) else {
        return String::new();
    };
    let overlay = session.overlay(open);
    let input = session.input(open, &overlay);
    let (sources, job, targets) = analysis::sources(&input);
    let choice = Choice::default();
    let request = analysis::request(&input, job, targets, &choice);
    let mut lines: Vec<String> = vec![];
    for (job, lowered) in plans.iter().zip(lower_all(&sources, planned, &request, &mut Sink::new())) {
        for file in lowered.iter().flat_map(|lowered| &lowered.files) {
            let Content::Yaml(object) = &file.content else { continue };
            let text = |pointer: &str| object.pointer(pointer).and_then(|value| value.as_str());
            if let (Some(kind), Some(name)) = (text("/kind"), text("/metadata/name")) {
                lines.push(format!("* {}: {kind} `{name}`", job.target.name));
            } else if let (Some(name), true) =
                (text("/name"), text("/protocolVersion").is_some() || object.get("protocolVersion").is_some())
            {
                lines.push(format!("* {}: OpenPAI job `{name}`", job.target.name));
            }
        }
        if lines.len() > 16 {
            break;
        }
    }
    lines.dedup();
    lines.truncate(16);
    lines.join("\n")
}

fn upper(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}
