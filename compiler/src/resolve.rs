//! Pass 3: a typed job to the plan, with all defaults filled in and all names resolved.
//!
//! Everything that depends on the job alone is determined here, once, for all backends: the order of roles, ranks, GPU
//! indices and port numbers, the rendezvous variables. What only a target knows (addresses, the instance's index) is a
//! placeholder in a [`Text`](jobc_schema::plan::Text). Nothing here grows with the number of instances.

mod accelerate;
mod budget;
mod code;
mod command;
mod completion;
mod context;
mod distributed;
mod elastic;
mod env;
mod files;
mod framework;
mod gpu;
mod graph;
mod image_build;
mod images;
mod job_json;
mod launch;
mod list_limits;
mod metrics;
mod names;
mod notices;
mod openpai_env;
mod openpai_ssh;
mod outputs;
mod ports;
mod preemption;
mod preflight;
mod provided;
mod queueing;
mod ray;
mod ready;
mod rendezvous;
mod resources;
mod scope;
mod secrets;
mod ssh;
mod stall;
mod text;
mod totals;
mod volume_source;
mod volumes;

use std::sync::Arc;

use indexmap::IndexMap;
use jobc_schema::Job;
use jobc_schema::distributed::Framework;
use jobc_schema::job::{Gang, GangWord};
use jobc_schema::plan::{GangPlan, JobPlan, ParamPlan, RoleMatrixPlan, RolePlan, TargetPlan};
use jobc_schema::queueing::PriorityPlan;
use jobc_schema::{BackendName, Pointer, Scalar};

use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::expand::Variant;
use crate::expression::Engine;
use crate::files::Files;
use crate::lock::Lock;
use crate::openpai::Names;

use context::Context;
use distributed::Rendezvous;
use graph::Graph;

pub(crate) use framework::{RENDEZVOUS, framework_name};
pub use list_limits::{MAX_LISTED_INSTANCES, MAX_LISTED_ROLES};
pub(crate) use preflight::name as check_name;
pub use provided::variables_by_name;
pub(crate) use rendezvous::{SHUTDOWN_SECONDS, framework_names};
pub(crate) use ssh::{ROOT, login_user};

/// Resolves a job: fills in defaults, resolves names, and determines the graph, ranks, ports and GPUs.
///
/// The result is `None` if there was an error; all errors are reported to the sink.
pub fn resolve(
    job: &Job,
    variant: &Variant,
    target: &TargetPlan,
    files: &dyn Files,
    lock: &Lock,
    sink: &mut Sink,
) -> Option<JobPlan> {
    let mut own = Sink::new();
    let plan = decide(job, variant, target, files, lock, &mut own);
    // The value of an invalid expression is a stand-in: findings about it are redundant.
    let is_news = |diagnostic: &Diagnostic| match diagnostic.labels.first().map(|label| &label.place) {
        Some(Location::Path { pointer, .. } | Location::Inside { pointer, .. }) => {
            !variant.broken.contains(pointer)
        }
        _ => true,
    };
    own.finish().into_iter().filter(is_news).for_each(|diagnostic| sink.push(diagnostic));
    plan.filter(|_| variant.broken.is_empty())
}

fn decide(
    job: &Job,
    variant: &Variant,
    target: &TargetPlan,
    files: &dyn Files,
    lock: &Lock,
    sink: &mut Sink,
) -> Option<JobPlan> {
    let table = Arc::new(context::role_table(job));
    let name = variant.job_name(&job.name);
    let context = Context { job, variant, name, engine: Engine::new(), table, files, lock };
    let graph = graph::resolve_graph(&context, sink);
    let rendezvous = distributed::resolve_distributed(&context, sink);
    names::check(&context, sink);
    let priority = queueing::resolve_priority(job, target, sink);
    let after = queueing::resolve_start(job, sink);
    queueing::check_schedule(job, sink);
    notices::check(&context, sink);
    let gang = resolve_gang(&context, &graph, rendezvous.as_ref(), sink);
    let mut volumes = volumes::resolve_volumes(&context, sink);
    code::resolve_code(&context, &target.settings, &mut volumes, sink);
    let (images, image_of) = images::resolve_images(&context, sink);
    let gpus = gpu::number_gpus(&context, &graph);
    let ports = Arc::new(ports::resolve_ports(&context, rendezvous.as_ref(), sink));
    let secrets = secrets::resolve_secrets(&context);
    let registries = secrets::resolve_registries(&context, sink);
    env::check_target(target, sink);
    let base = scope::shared_names(&context, rendezvous.as_ref());
    let mut roles = Vec::with_capacity(job.roles.len());
    for (number, (name, role)) in job.roles.iter().enumerate() {
        let mounts = volumes::resolve_mounts(&context, name, role, sink);
        let scope = scope::RoleScope::new(&context, &base, number, &ports, &mounts);
        let texts = text::Texts::new(&context, &scope);
        let at = Pointer::ROOT.keys(["roles", name]);
        let own = command::resolve_command(&texts, role, &at, sink);
        let command = match rendezvous.as_ref().and_then(|r| r.member(name)) {
            Some((plan, member)) if plan.framework == Framework::Ray => {
                ray::command(plan, member, role, context.table[name].gpus, own)
            }
            Some((plan, member)) if plan.framework == Framework::Accelerate => {
                accelerate::command(plan, member, own)
            }
            _ => own,
        };
        let group = variant.groups.get(name).map(|group| RoleMatrixPlan {
            role: group.role.clone(),
            number: group.number,
            values: (*group.values).clone(),
            max_parallel: group.max_parallel,
        });
        let metrics = metrics::resolve_metrics(job, name, role, &mounts, sink);
        let plan = RolePlan {
            name: name.clone(),
            matrix: group,
            metrics,
            instances: context.table[name].instances,
            parallel: role.parallel,
            image: image_of[number].clone().unwrap_or_default(),
            command,
            launch: rendezvous.as_ref().map(|r| r.launch(name)).unwrap_or_default(),
            env: env::resolve_env(&context, &texts, role, &at, sink),
            provided_env: IndexMap::new(),
            workdir: command::resolve_workdir(&texts, role, &at, sink).or_else(|| code::workdir(&mounts)),
            user: role.user.clone(),
            labels: role.labels.clone(),
            resources: resources::resolve_resources(
                role,
                gpus[number],
                variant.all_gpus.contains(name),
                &target.settings,
                &at,
                sink,
            ),
            ports: ports[number].clone(),
            needs: graph.needs[number].clone(),
            ready: ready::resolve_ready(&texts, role, &scope, &at, sink),
            completion: completion::resolve_completion(&context, name, role, rendezvous.as_ref(), &at, sink),
            retry: completion::resolve_retry(
                &context,
                role,
                rendezvous.as_ref().is_some_and(|r| r.has(name) && r.plan.elastic.is_none()),
                &at,
                sink,
            ),
            preflight: vec![],
            stall: None,
            timeout_seconds: role.timeout.map(|t| t.0),
            grace_period_seconds: preemption::grace_seconds(job, role),
            stop_signal: preemption::stop_signal(job, role),
            init: role.init.unwrap_or(true),
            files: files::resolve_files(&context, &texts, role, &mounts, &at, sink),
            mounts,
            provided_files: vec![],
            security: role.security.clone().unwrap_or_default(),
        };
        let stall = stall::resolve_stall(job, role, &plan, sink);
        let around = preflight::Surroundings {
            job,
            volumes: &volumes,
            images: &images,
            distributed: rendezvous.as_ref().map(|rendezvous| &rendezvous.plan),
            ports: &ports,
        };
        let preflight = preflight::resolve_preflight(&around, role, &plan, sink);
        roles.push(RolePlan { preflight, stall, ..plan });
    }
    if sink.stops_the_plan() {
        return None;
    }
    preflight::check_unused(job, &roles, sink);
    metrics::check_files(job, &roles, sink);
    let preemption = preemption::resolve_preemption(job, &roles, sink);
    outputs::check_combinations(&roles, job, sink);
    if sink.stops_the_plan() {
        return None;
    }
    let totals = totals::add_up(&roles);
    let mut plan = JobPlan {
        name: context.name.clone(),
        description: job.description.clone(),
        matrix: variant.matrix.clone(),
        max_parallel: variant.max_parallel,
        params: params(variant),
        target: with_job_settings(target, job, priority.as_ref()),
        images,
        volumes,
        secrets,
        registries,
        roles,
        stages: graph.stages,
        distributed: rendezvous.map(|r| r.plan),
        gang,
        network: job.network,
        extra_hosts: job.extra_hosts.clone(),
        dns: job.dns.clone(),
        timeout_seconds: job.timeout.map(|t| t.0),
        priority,
        after,
        schedule: job.schedule.clone(),
        notify: job.notify.clone(),
        idle: job.idle,
        preemption,
        budget: job.budget,
        compat: job.compat.clone(),
        totals,
    };
    queueing::check_idle(&plan, sink);
    budget::check_budget(&plan, sink);
    if sink.stops_the_plan() {
        return None;
    }
    provided::provide(&mut plan, job, files, &Names::new(job.openpai.as_ref()));
    Some(plan)
}

/// The parameters as recorded in the plan: a value from the environment is recorded as the variable's name.
fn params(variant: &Variant) -> IndexMap<String, ParamPlan> {
    let plan = |name: &str, value: &Scalar| match variant.from_environment.get(name) {
        Some(env) => ParamPlan::Environment { env: env.clone() },
        None => ParamPlan::Value(value.clone()),
    };
    variant.params.iter().map(|(name, value)| (name.clone(), plan(name, value))).collect()
}

/// The target, with the job's priority, and its OpenPAI settings as defaults of its own.
fn with_job_settings(target: &TargetPlan, job: &Job, priority: Option<&PriorityPlan>) -> TargetPlan {
    let mut target = target.clone();
    if let Some(priority) = priority {
        queueing::apply(priority, &mut target.settings);
    }
    if let Some(own) =
        job.openpai.as_ref().filter(|_| target.settings.backends.contains(&BackendName::Openpai))
    {
        let settings = target.settings.openpai.unwrap_or_default();
        target.settings.openpai = Some(settings.over(own));
    }
    target
}

fn resolve_gang(
    context: &Context<'_>,
    graph: &Graph,
    rendezvous: Option<&Rendezvous>,
    sink: &mut Sink,
) -> GangPlan {
    let gang = match &context.job.gang {
        None | Some(Gang::Word(GangWord::Auto)) => GangPlan::Auto,
        Some(Gang::Word(GangWord::Required)) => GangPlan::Required,
        Some(Gang::Word(GangWord::None)) => GangPlan::None,
        Some(Gang::Min(gang)) => GangPlan::Min(gang.min),
    };
    let total: u64 = context.table.values().map(|facts| u64::from(facts.instances)).sum();
    if let GangPlan::Min(min) = gang
        && u64::from(min) > total
    {
        sink.push(
            Diagnostic::error(codes::GANG_MIN, format!("the gang of {min} is larger than the job"))
                .at(&Pointer::ROOT.keys(["gang", "min"]), format!("the job has {total} instances"))
                .note("write a number of instances that the job has, or `gang: required` for all"),
        );
    }
    if let Some(rendezvous) = rendezvous {
        graph::report_deadlocks(context, graph, rendezvous, gang, sink);
    }
    gang
}

#[cfg(test)]
mod tests;
