//! A task's config.json: the parts put together, in one order on every run.

use indexmap::IndexMap;
use jobc_schema::Pointer;
use jobc_schema::plan::{JobPlan, RolePlan};
use jobc_schema::target::GpuInjection;
use oci_spec::runtime::{Root, Spec, VERSION};
use serde_json::{Value, json};

use crate::backend::reasons::Reasons;
use crate::backend::tasks::Task;
use crate::backend::{Address, Content, Context, File, FilePart, Origin, PartSource};

use super::gpu::Injection;
use super::mounts::MountRequest;
use super::{annotations, capabilities, gpu, linux, mounts, process};

/// The config.json of a task.
pub(super) fn config(
    job: &JobPlan,
    task: Task<'_>,
    at: &dyn Address,
    context: &Context<'_>,
    chosen: GpuInjection,
) -> File {
    let held = capabilities::task_capabilities(task.role);
    let env = process::env(job, task, at);
    let injection = gpu::injection(job, task, chosen);
    let requests = mounts::mounts(job, task, context);
    let notes = annotations::annotations(job, task, injection.as_ref());
    let mut root = Root::default();
    root.set_path("rootfs".into()).set_readonly(Some(task.role.security.read_only_root));
    let mut spec = Spec::default();
    spec.set_version(VERSION.to_owned())
        .set_root(Some(root))
        .set_mounts(Some(requests.iter().map(|requests| requests.mount.clone()).collect()))
        .set_process(Some(process::process(job, task.role, at, &env, &held)))
        .set_hostname(Some(task.name()))
        .set_hooks(match injection {
            Some(Injection::Hook(hooks)) => Some(hooks),
            Some(Injection::Devices(_)) | None => None,
        })
        .set_linux(Some(linux::linux(job, task, &held)));
    let value = ordered(serde_json::to_value(&spec).expect("a bundle has string keys"), &notes);
    let mut file = File::new(format!("{}/config.json", task.name()), Content::Json(value));
    file.origins = origins(job, task.role, &env, &requests);
    file
}

/// Puts in order what the library keeps in hash tables: annotations and the sets of capabilities.
fn ordered(mut value: Value, notes: &IndexMap<String, String>) -> Value {
    value["annotations"] = json!(notes);
    if let Some(Value::Object(sets)) = value.pointer_mut("/process/capabilities") {
        for set in sets.values_mut().filter_map(Value::as_array_mut) {
            set.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        }
    }
    value
}

/// Where the parts of config.json come from.
fn origins(
    job: &JobPlan,
    role: &RolePlan,
    env: &IndexMap<String, String>,
    requests: &[MountRequest],
) -> Vec<Origin> {
    let spec = role.at();
    let resources = spec.key("resources");
    let root = Pointer::ROOT;
    let mut list = vec![];
    let mut note =
        |part: Pointer, from: PartSource| list.push(Origin { part: FilePart::Pointer(part), from });
    note(root.keys(["process", "args"]), PartSource::Spec(spec.key("run")));
    let reasons = Reasons::of(job, role);
    for (number, name) in env.keys().enumerate() {
        let part = root.keys(["process", "env"]).index(number);
        if role.env.contains_key(name) {
            note(part, PartSource::Spec(spec.keys(["env", name])));
        } else if role.provided_env.contains_key(name) {
            note(part, reasons.variable(name));
        } else if name != "PATH" {
            note(part, PartSource::Spec(resources.key("gpu")));
        }
    }
    for (number, mount) in requests.iter().enumerate() {
        if let Some(from) = &mount.from {
            note(root.key("mounts").index(number), PartSource::Spec(from.clone()));
        }
    }
    let mut limit = |wanted: bool, part: &[&str], from: Pointer| {
        if wanted {
            note(root.keys(part.iter().copied()), PartSource::Spec(from));
        }
    };
    limit(role.user.is_some(), &["process", "user"], spec.key("user"));
    limit(role.workdir.is_some(), &["process", "cwd"], spec.key("workdir"));
    limit(!role.resources.ulimits.is_empty(), &["process", "rlimits"], resources.key("ulimits"));
    limit(role.security.read_only_root, &["root", "readonly"], spec.keys(["security", "read_only_root"]));
    limit(role.resources.cpu_millis.is_some(), &["linux", "resources", "cpu"], resources.key("cpu"));
    limit(role.resources.memory_bytes.is_some(), &["linux", "resources", "memory"], resources.key("memory"));
    limit(role.resources.pids.is_some(), &["linux", "resources", "pids"], resources.key("pids"));
    let huge_pages = !role.resources.hugepages_bytes.is_empty();
    limit(huge_pages, &["linux", "resources", "hugepageLimits"], resources.key("hugepages"));
    let io = role.resources.io.keys();
    limit(io.len() > 0, &["linux", "resources", "blockIO"], resources.key("io"));
    for device in io.filter(|device| device.starts_with('/')) {
        limit(true, &["annotations", &format!("dev.jobc.io.{device}")], resources.keys(["io", device]));
    }
    list.extend(settings(job));
    list
}

/// Where the parts come from that the target sets.
fn settings(job: &JobPlan) -> impl Iterator<Item = Origin> {
    let settings = job.target.settings.cgroup.as_ref();
    let set = |key, part: &'static [&str], wanted: bool| wanted.then_some((key, part));
    let parts = settings.map(|settings| {
        [
            set("cpuset", &["cpu", "cpus"], settings.cpuset.is_some()),
            set("mems", &["cpu", "mems"], settings.mems.is_some()),
            set("io_weight", &["blockIO", "weight"], settings.io_weight.is_some()),
        ]
    });
    parts.into_iter().flatten().flatten().map(|(key, part)| Origin {
        part: FilePart::Pointer(Pointer::ROOT.keys(["linux", "resources"]).keys(part.iter().copied())),
        from: PartSource::Target(Pointer::ROOT.keys(["cgroup", key])),
    })
}
