//! The `#SBATCH` lines of a script.

use jobc_schema::plan::{ImageSource, JobPlan, RolePlan};
use jobc_schema::queueing::StartTime;
use jobc_schema::role::RetryScope;
use jobc_schema::target::{SlurmContainer, SlurmMemory, SlurmTarget};
use jobc_schema::{Pointer, Seconds};

use crate::backend::PartSource;
use crate::diagnostic::{Diagnostic, Sink, codes};

use super::gpu;
use super::group::{Component, Group};
use super::parts::Parts;

const MIB: u64 = 1 << 20;

/// A line, and where it comes from.
pub(super) struct Line {
    pub text: String,
    pub from: Option<PartSource>,
}

/// What a group asks Slurm for beside resources.
pub(super) struct Request {
    /// How often it may be started again.
    pub retries: u32,
    /// Whether it is started again whenever it has to leave.
    pub resumes: bool,
    /// Its time limit.
    pub limit: Option<Limit>,
    /// Whether the signal before the end is for the script, which tells its tasks.
    pub tells_script: bool,
}

/// A time limit, and the key of the job that it comes from.
#[derive(Debug, PartialEq)]
pub(super) struct Limit {
    pub seconds: u64,
    pub from: Pointer,
}

/// The lines of a group's script.
pub(super) fn lines(
    parts: &Parts<'_>,
    groups: &[Group<'_>],
    group: &Group<'_>,
    request: &Request,
) -> Vec<Line> {
    let mut out = Lines(vec![]);
    for (number, component) in group.components.iter().enumerate() {
        if number == 0 {
            out.of_job(parts, groups, group, request);
        } else {
            out.0.push(Line { text: "#SBATCH hetjob".to_owned(), from: None });
        }
        out.of_component(parts, component, request, number == 0);
    }
    out.0
}

/// The options by which a node's share is requested for an instance of a role.
pub(super) fn resources(job: &JobPlan, settings: &SlurmTarget, role: &RolePlan) -> Vec<String> {
    let resources = &role.resources;
    let mut list = vec![];
    list.extend(cpus(role).map(|cpus| format!("--cpus-per-task={cpus}")));
    list.extend(resources.memory_bytes.map(|bytes| memory(settings, role, bytes)));
    list.extend(gpu::request(job, settings, role));
    list.extend(job.disk_bytes(role).map(|bytes| format!("--tmp={}M", bytes.div_ceil(MIB))));
    list.extend(gpu::constraint(settings, role).map(|constraint| format!("--constraint={constraint}")));
    list
}

/// The option that requests the memory of an instance.
fn memory(settings: &SlurmTarget, role: &RolePlan, bytes: u64) -> String {
    let gpus = role.gpus().map(|gpu| u64::from(gpu.count)).filter(|count| *count > 0);
    let (option, parts) = match (settings.memory, gpus) {
        (SlurmMemory::PerCpu, _) => ("mem-per-cpu", cpus(role).unwrap_or(1).max(1)),
        (SlurmMemory::PerGpu, Some(gpus)) => ("mem-per-gpu", gpus),
        (SlurmMemory::PerNode | SlurmMemory::PerGpu, _) => ("mem", 1),
    };
    format!("--{option}={}M", bytes.div_ceil(parts).div_ceil(MIB))
}

/// The options that a step of a role repeats.
pub(super) fn step_resources(job: &JobPlan, settings: &SlurmTarget, role: &RolePlan) -> Vec<String> {
    let list = resources(job, settings, role);
    list.into_iter()
        .filter(|option| !option.starts_with("--constraint") && !option.starts_with("--tmp"))
        .collect()
}

/// Whole CPUs of an instance.
pub(super) fn cpus(role: &RolePlan) -> Option<u64> {
    role.resources.cpu_millis.map(|millis| millis.div_ceil(1000))
}

/// Whether a limit of setrlimit(2) is a size, which `ulimit` counts in KiB.
pub(super) fn is_size(limit: &str) -> bool {
    matches!(limit, "core" | "data" | "fsize" | "memlock" | "rss" | "stack" | "as")
}

/// Reports amounts that Slurm and bash count in coarser units. That memory becomes whole MiB makes no difference: `32GB`
/// is 30518 MiB.
pub(super) fn check_amounts(job: &JobPlan, settings: &SlurmTarget, sink: &mut Sink) {
    check_limits(job, settings, sink);
    let mut rounded = |is_rounded: bool, at: Pointer, unit: &str, to: String| {
        if is_rounded {
            let message = format!("Slurm counts in {unit}; the amount is rounded up to {to}");
            sink.push(Diagnostic::info(codes::SLURM_ROUNDED, message).at(&at, "requested here"));
        }
    };
    for role in &job.roles {
        let at = role.at().key("resources");
        if let (Some(millis), Some(cpus)) = (role.resources.cpu_millis, cpus(role)) {
            rounded(millis % 1000 != 0, at.key("cpu"), "whole CPUs", cpus.to_string());
        }
    }
    if let Some(seconds) = job.timeout_seconds {
        let to = format!("{}m", seconds.div_ceil(60));
        rounded(seconds % 60 != 0, Pointer::ROOT.key("timeout"), "minutes", to);
    }
}

/// Reports limits that bash counts in coarser units.
fn check_limits(job: &JobPlan, settings: &SlurmTarget, sink: &mut Sink) {
    // In bundles, they are in bytes.
    if matches!(settings.container, SlurmContainer::Jobc | SlurmContainer::Oci) {
        return;
    }
    for role in &job.roles {
        for (name, limit) in &role.resources.ulimits {
            let Some(limit) = limit.filter(|limit| limit % 1024 != 0 && is_size(name)) else { continue };
            let to = limit.div_ceil(1024);
            let message = format!("`ulimit` counts in KiB; the limit is rounded up to {to}KiB");
            let at = role.at().keys(["resources", "ulimits", name]);
            sink.push(Diagnostic::info(codes::SLURM_ROUNDED, message).at(&at, "requested here"));
        }
    }
}

/// How often Slurm starts a group again. Without jobc nothing else repeats its tasks.
pub(super) fn job_retries(group: &Group<'_>, is_direct: bool) -> u32 {
    let retries = group.roles.iter().filter(|role| is_direct || role.retry.scope == RetryScope::Job);
    retries.map(|role| role.retry.max).max().unwrap_or(0)
}

/// The environment variables of the user that `image: {host: {env: [...]}}` passes.
pub(super) fn passed_variables(job: &JobPlan) -> Vec<&str> {
    let mut names: Vec<&str> = vec![];
    for image in job.images.values() {
        if let ImageSource::Host { env, .. } = &image.source {
            names.extend(env.iter().map(String::as_str));
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// The variables of the user that sbatch passes on: none, or those for the image `host`.
fn exported(job: &JobPlan) -> Vec<&str> {
    let mut names = vec![];
    for image in job.images.values() {
        let ImageSource::Host { cwd, venv, env } = &image.source else { continue };
        if *cwd || *venv || !env.is_empty() {
            names.extend(["HOME", "PATH", "USER"]);
        }
        if *venv {
            names.extend(["CONDA_PREFIX", "VIRTUAL_ENV"]);
        }
    }
    names.extend(passed_variables(job));
    names.sort_unstable();
    names.dedup();
    names
}

/// Lines while they are made.
struct Lines(Vec<Line>);

impl Lines {
    fn push(&mut self, option: &str, from: PartSource) {
        self.0.push(Line { text: format!("#SBATCH {}", directive(option)), from: Some(from) });
    }

    fn setting(&mut self, option: &str, value: Option<&String>, key: &str) {
        if let Some(value) = value {
            self.push(&format!("--{option}={value}"), target(key));
        }
    }

    /// The options for the whole job.
    fn of_job(&mut self, parts: &Parts<'_>, groups: &[Group<'_>], group: &Group<'_>, request: &Request) {
        let (job, settings) = (parts.job, parts.settings);
        let root = Pointer::ROOT;
        let name = if groups.len() > 1 { format!("{}-{}", job.name, group.name) } else { job.name.clone() };
        self.push(&format!("--job-name={name}"), spec(&root.key("name")));
        // `sbatch` knows the user's name there, and no home directory.
        match settings.directory.as_ref().filter(|directory| !directory.starts_with("~/")) {
            Some(directory) => {
                let directory = SlurmTarget::of_user(directory, "%u");
                self.push(&format!("--output={directory}/%x-%j.out"), target("directory"));
            }
            None => self.push(
                &format!("--output=../../{}-%j.out", job.target.name),
                PartSource::Default("beside the directory of the target"),
            ),
        }
        let passed = exported(job);
        let export = if passed.is_empty() { "NONE".to_owned() } else { passed.join(",") };
        self.push(&format!("--export={export}"), PartSource::Default("the caller's variables stay there"));
        if request.retries > 0 || request.resumes {
            let at = root.key(if request.resumes { "preemption" } else { "retry" });
            self.push("--requeue", spec(&at));
            self.push("--open-mode=append", spec(&at));
        } else {
            // Many clusters requeue a job after a node failure.
            self.push("--no-requeue", PartSource::Default("without `retry` a job runs once"));
        }
        if let Some(begin) = job.after.as_deref().and_then(begin) {
            self.push(&format!("--begin={begin}"), spec(&root.key("after")));
        }
        if let Some(nice) = nice(job) {
            self.push(&format!("--nice={nice}"), spec(&root.key("priority")));
        }
        self.setting("licenses", settings.licenses.as_ref(), "licenses");
    }

    /// The options for a component of the allocation.
    fn of_component(
        &mut self,
        parts: &Parts<'_>,
        component: &Component<'_>,
        request: &Request,
        is_first: bool,
    ) {
        let (job, settings) = (parts.job, parts.settings);
        let root = Pointer::ROOT;
        let role = component.model();
        let at = role.at();
        self.push(&format!("--nodes={}", component.nodes()), spec(&at.key("instances")));
        self.push("--ntasks-per-node=1", PartSource::Default("one node for each instance"));
        for option in resources(job, settings, role) {
            let key = match option.split('=').next() {
                Some("--cpus-per-task") => "cpu",
                Some("--mem" | "--mem-per-cpu" | "--mem-per-gpu") => "memory",
                Some("--tmp") if role.resources.disk_bytes.is_none() => {
                    let volume = job.scratch(role).next().map_or("", |(volume, _)| volume);
                    self.push(&option, spec(&root.keys(["data", volume, "source"])));
                    continue;
                }
                Some("--tmp") => "disk",
                Some("--constraint") => continue,
                _ => "gpu",
            };
            self.push(&option, spec(&at.keys(["resources", key])));
        }
        if let Some(limit) = &request.limit {
            self.push(&format!("--time={}", limit.seconds.div_ceil(60)), spec(&limit.from));
        }
        let grace = component.roles.iter().map(|role| role.grace_period_seconds).max().unwrap_or(30);
        if is_first && (grace != 30 || request.resumes) {
            let receiver = if request.tells_script { "B:" } else { "" };
            let from = if request.resumes { root.key("preemption") } else { at.key("grace_period") };
            self.push(&format!("--signal={receiver}TERM@{grace}"), spec(&from));
        }
        self.setting("partition", settings.partition.as_ref(), "partition");
        self.setting("account", settings.account.as_ref(), "account");
        self.setting("qos", settings.qos.as_ref(), "qos");
        self.setting("reservation", settings.reservation.as_ref(), "reservation");
        let features = [settings.constraint.clone(), gpu::constraint(settings, role)];
        let features: Vec<String> = features.into_iter().flatten().collect();
        if !features.is_empty() {
            let from = if settings.constraint.is_some() {
                target("constraint")
            } else {
                spec(&at.keys(["resources", "gpu"]))
            };
            self.push(&format!("--constraint={}", all_of(&features)), from);
        }
        if settings.exclusive {
            self.push("--exclusive", target("exclusive"));
        }
        self.setting("switches", settings.switches.as_ref(), "switches");
        for (option, value) in &settings.extra {
            let from = PartSource::Target(root.keys(["slurm", "extra", option]));
            if value.text == "true" {
                self.push(&format!("--{option}"), from);
            } else {
                self.push(&format!("--{option}={}", value.text), from);
            }
        }
    }
}

/// The earliest start as `sbatch` reads it.
fn begin(after: &str) -> Option<String> {
    Some(match StartTime::parse(after).ok()? {
        StartTime::In(Seconds(seconds)) => format!("now+{seconds}"),
        StartTime::TimeOfDay(_) | StartTime::At { .. } => after.replace(' ', "T"),
    })
}

/// By how much a job that says so comes later than others: 100 for each step below 0.
fn nice(job: &JobPlan) -> Option<u32> {
    let entry = &job.priority.as_ref()?.entry;
    let value = entry.value.filter(|value| entry.qos.is_none() && *value < 0)?;
    Some(u32::from(value.unsigned_abs()) * 100)
}

/// An option as `sbatch` reads it from a script: like a shell it splits words, takes `#` for a comment, and knows
/// quotes and backslashes; `$` has no meaning.
fn directive(option: &str) -> String {
    let escaped: String = option
        .chars()
        .flat_map(|c| matches!(c, '\\' | '"' | '#').then_some('\\').into_iter().chain([c]))
        .collect();
    if option.contains([' ', '\t', '\'']) { format!("\"{escaped}\"") } else { escaped }
}

/// Features that are all required; `|` binds less than `&`.
fn all_of(features: &[String]) -> String {
    match features {
        [one] => one.clone(),
        several => {
            let grouped = |feature: &String| {
                if feature.contains('|') { format!("({feature})") } else { feature.clone() }
            };
            several.iter().map(grouped).collect::<Vec<_>>().join("&")
        }
    }
}

fn spec(at: &Pointer) -> PartSource {
    PartSource::Spec(at.clone())
}

fn target(key: &str) -> PartSource {
    PartSource::Target(Pointer::ROOT.keys(["slurm", key]))
}

#[cfg(test)]
mod tests {
    use super::directive;

    /// tests/slurm checks these lines with a real `sbatch`.
    #[test]
    fn options_are_quoted_for_sbatch() {
        for (option, line) in [
            ("--nodes=2", "--nodes=2"),
            ("--comment=a b", "\"--comment=a b\""),
            ("--licenses=a#b", r"--licenses=a\#b"),
            (r#"--comment=it's "5" \ #"#, r#""--comment=it's \"5\" \\ \#""#),
            ("--output=/日本/$HOME/x", "--output=/日本/$HOME/x"),
        ] {
            assert_eq!(directive(option), line);
        }
    }
}
