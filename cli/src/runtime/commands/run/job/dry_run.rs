//! The steps of a job, in order: its roles, its resources, and the operations of one task of each role.
//!
//! The tasks of a role differ only in their number, so the first represents all. Everything is resolved as for a run,
//! in a temporary directory. Nothing is pulled, created or started.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use camino::Utf8PathBuf;
use jobc_container::container::create::{self, CreateRequest};
use jobc_container::options::Options;
use jobc_container::prepare::listing::Line;
use jobc_container::root::Root;
use jobc_container::scope::{Scope, ScopeOwner};
use jobc_container::state::Id;
use jobc_gpu::Host;
use jobc_gpu::demand::Demands;
use jobc_gpu::nvml::Freshness;
use jobc_gpu::step::usable_inventory;
use jobc_job::admission;
use jobc_job::admission::capacity::Capacity;
use jobc_job::admission::claim;
use jobc_job::directory::{Directory, JobDirectories};
use jobc_job::host_environment::{Caller, HostEnvironments};
use jobc_job::provision;
use jobc_job::secrets::Secrets;
use jobc_schema::Bytes;
use jobc_schema::job::Network;
use jobc_schema::plan::{GangPlan, JobPlan, RolePlan};
use jobc_schema::plural;
use jobc_schema::role::{NeedState, UNLIMITED_RETRIES};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::{JobId, TaskId};

use super::built_plan::{BuiltJob, BuiltPlan};
use super::{images, submit};
use crate::report::cpus;
use crate::runtime::args::run::RunArgs;

use crate::terminal;

/// Prints the steps of each job; with `scope`, its cgroups would be in a scope of this user's systemd.
pub(super) fn show(args: &RunArgs, built: &BuiltPlan, places: &JobDirectories, scope: bool) -> Result<()> {
    for job in &built.jobs {
        let scratch = ScratchDirectory::create(places, &job.plan.name)?;
        let holder = scope.then(|| ScopeOwner::Job(scratch.directory.id.clone()));
        let unit = holder.as_ref().map(Scope::find).transpose()?;
        terminal::print(&describe_job(&job.plan, &scratch.directory, unit.as_ref().map(Scope::name))?);
        print_steps(args, built, job, &scratch.directory, holder.as_ref())?;
    }
    Ok(())
}

/// Directories of a job that does not run, removed at the end.
struct ScratchDirectory {
    directory: Directory,
}

impl ScratchDirectory {
    fn create(places: &JobDirectories, name: &str) -> Result<Self> {
        let taken = places.list()?.into_iter().filter(|id| id.name == name).map(|id| id.run).max();
        let id = JobId { name: name.to_owned(), run: taken.unwrap_or(0) + 1 };
        // Job ids never begin with a dot, so commands ignore it.
        let state: PathBuf = places.state.join(format!(".dry-run-{}-{id}", std::process::id()));
        let record = state.join("record");
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&record);
        made.map_err(|error| {
            let why = crate::input::reason(&error);
            Error::new(Kind::System, format!("cannot make the directory `{}`: {why}", record.display()))
        })?;
        Ok(Self { directory: Directory { id, state, record } })
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // A leftover only uses space.
        let _ = provision::release(&self.directory).and_then(|()| self.directory.remove());
    }
}

/// The job as a whole: its resources and its order. `scope` is the systemd unit of its supervisor, if any.
pub(super) fn describe_job(plan: &JobPlan, directory: &Directory, scope: Option<&str>) -> Result<String> {
    let capacity =
        Capacity::of_host(&directory.state)?.with_gpus(usable_inventory(&Host::here(), Freshness::Facts));
    let network = match plan.network {
        Network::Auto | Network::Host => "host",
        Network::Job => "job network, with an address for each task",
        Network::None => "none",
    };
    let gang = match plan.gang {
        GangPlan::Auto | GangPlan::Required => {
            "tasks that can start together are all created before the first starts".to_owned()
        }
        GangPlan::Min(least) => format!("at least {least} tasks are created before the first starts"),
        GangPlan::None => "each task starts when it can".to_owned(),
    };
    let mut out = format!("job {}: {}\n", directory.id, plural(plan.totals.instances, "task"));
    out += &format!("network: {network}\ngang: {gang}\n");
    if let Some(unit) = scope {
        out += &format!("cgroups: in the scope `{unit}` of this user's systemd\n");
    }
    if let Some(seconds) = plan.timeout_seconds {
        out += &format!("timeout: {seconds} s\n");
    }
    out += &format!("takes at most: {}\n", claim::of(plan).describe());
    let memory = Bytes(capacity.memory_bytes).measured();
    out += &format!(
        "this host has: {}, {memory} of memory, {} GPUs\n",
        cpus(capacity.cpu_millis),
        capacity.gpus.devices().len()
    );
    out += "order:\n";
    for (number, stage) in (1..).zip(&plan.stages) {
        for role in stage.iter().filter_map(|name| plan.role(name)) {
            out += &format!("  {number}  {}\n", describe_role(role));
        }
    }
    Ok(out)
}

/// A role in the order of the job: `train, 2 instances, after prepare has succeeded`.
fn describe_role(role: &RolePlan) -> String {
    let mut out = format!("{}, {}", role.name, plural(role.instances, "instance"));
    if let Some(matrix) = &role.matrix {
        let values: Vec<String> =
            matrix.values.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
        out += &format!(" with {}", values.join(" "));
    }
    if let Some(parallel) = role.parallel {
        out += &format!(", {parallel} at once");
    }
    for need in &role.needs {
        let state = match need.state {
            NeedState::Started => "started",
            NeedState::Ready => "become ready",
            NeedState::Succeeded => "succeeded",
        };
        out += &format!(", after {} of {} have {state}", need.min, need.role);
    }
    match role.retry.max {
        0 => {}
        UNLIMITED_RETRIES => out += ", retried without a limit",
        max => out += &format!(", retried at most {max} times"),
    }
    out
}

/// Resolves the first task of each role as a supervisor does, and prints the operations.
fn print_steps(
    args: &RunArgs,
    built: &BuiltPlan,
    job: &BuiltJob,
    directory: &Directory,
    scope: Option<&ScopeOwner>,
) -> Result<()> {
    let (images, missing) = images::find_local(args, built, job)?;
    if !missing.is_empty() {
        let lines: String = missing.iter().map(|line| format!("{line}\n")).collect();
        terminal::print(&format!("images:\n{lines}the steps of tasks are known only then\n"));
        return Ok(());
    }
    let submission = submit::submission(args, &job.plan, built, &images)?;
    submit::write_files(directory, &first_of_each_role(job), &submission)?;
    let secrets = Secrets::read(&job.plan, &submission.directory)?;
    let environments =
        HostEnvironments::read(&job.plan, &Caller::of_process(submission.working_directory.clone()))?;
    let of_job = provision::Job {
        directory,
        plan: &job.plan,
        submission: &submission,
        secrets: &secrets,
        environments: &environments,
    };
    let mut provided = provision::dry_run(&of_job)?;
    if Demands::requests_gpus(&job.plan) {
        let inventory = usable_inventory(&Host::here(), Freshness::of_command(built.gpus_asked_at));
        provided.with_gpus(admission::dry_run_gpus(&job.plan, &submission, inventory)?);
    }
    // Of a role with a matrix the first combination is shown: the others differ in their values.
    for role in
        job.plan.roles.iter().filter(|role| role.matrix.as_ref().is_none_or(|matrix| matrix.number == 0))
    {
        let task = TaskId::new(&role.name, 0);
        let begun = create::reserve(&directory.containers(), &Id::new(&format!("{}.{task}", directory.id))?)?;
        let given = provision::prepare_task(&provided, &task, begun.directory())?;
        let root = match &given.root {
            Root::Directory(path) => path.display().to_string(),
            Root::Overlay { lowers, .. } => match &lowers[..] {
                [lower] => format!("{} under a writable layer in memory", lower.display()),
                lowers => format!("{} layers under a writable layer in memory", lowers.len()),
            },
        };
        let changed: String = given.notes.iter().map(|line| format!("changed: {line}\n")).collect();
        let request = CreateRequest {
            options: Options {
                // A note says that the job would be refused.
                allow_unenforced: true,
                scope: scope.cloned(),
                secret_environment: given.secret_environment,
                ..Options::default()
            },
            root: Some(given.root),
            ..CreateRequest::default()
        };
        let steps = number_lines(&begun.plan(&given.bundle, request)?);
        terminal::print(&format!("\n{}\nroot: {root}\n{changed}{steps}", heading(role)));
    }
    Ok(())
}

/// The job with the bundles that are shown: there is no need to write a thousand similar ones to show one.
fn first_of_each_role(job: &BuiltJob) -> BuiltJob {
    let first: Vec<Utf8PathBuf> =
        job.plan.roles.iter().map(|role| Utf8PathBuf::from(format!("oci/{}-0", role.name))).collect();
    let files =
        job.files.iter().filter(|file| first.iter().any(|directory| file.path.starts_with(directory)));
    BuiltJob { plan: job.plan.clone(), files: files.cloned().collect() }
}

/// The tasks of a list of operations.
fn heading(role: &RolePlan) -> String {
    let name = &role.name;
    match role.instances {
        1 => format!("{name}-0"),
        2 => format!("{name}-0, and the same for {name}-1"),
        count => format!("{name}-0, and the same for {name}-1 to {name}-{}", count - 1),
    }
}

/// The operations, one per line with its number and the field of config.json that causes it.
pub(in crate::runtime::commands::run) fn number_lines(lines: &[Line]) -> String {
    (1..).zip(lines).map(|(number, line)| format!("{number:3}  {line}\n")).collect()
}
