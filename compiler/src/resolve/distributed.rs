//! The rendezvous: its members, their order, and their numbers of processes.

use indexmap::IndexMap;
use jobc_schema::Pointer;
use jobc_schema::distributed::{Distributed, Framework, MemberPart, Members};
use jobc_schema::plan::{DistributedPlan, Launch, MemberPlan, SshPlan};

use super::context::Context;
use super::framework::{RENDEZVOUS, framework_name, part_name};
use super::{elastic, launch, ray, ssh};
use crate::diagnostic::{Diagnostic, DocumentId, Location, Safety, Sink, codes};
use crate::suggest;

/// A resolved rendezvous.
pub(super) struct Rendezvous {
    pub(super) plan: DistributedPlan,
    /// The members' indices by role.
    numbers: IndexMap<String, usize>,
    /// Whether the user chose the port.
    pub(super) port_written: bool,
    /// The instances that run the command.
    launch: launch::Launchers,
}

impl Rendezvous {
    /// Whether a role takes part.
    pub(super) fn has(&self, role: &str) -> bool {
        self.numbers.contains_key(role)
    }

    /// The rendezvous, and the role's part in it.
    pub(super) fn member(&self, role: &str) -> Option<(&DistributedPlan, &MemberPlan)> {
        let member = self.plan.members.get(*self.numbers.get(role)?)?;
        Some((&self.plan, member))
    }

    /// The instances of a role that run the command.
    pub(super) fn launch(&self, role: &str) -> Launch {
        self.launch.of(role)
    }

    /// Whether a member listens at the rendezvous port: the first one; with TensorFlow the whole cluster; with MPI
    /// none, unless the user sets a port.
    pub(super) fn listens(&self, role: &str) -> bool {
        let Some(member) = self.plan.members.iter().find(|member| member.role == role) else { return false };
        match self.plan.framework {
            Framework::Tensorflow => member.part != MemberPart::Evaluator,
            Framework::Mpi | Framework::Horovod => self.port_written && member.first_rank == Some(0),
            _ => member.first_rank == Some(0),
        }
    }
}

/// The default port of a framework.
///
/// 29500 for torchrun and PyTorch; 2222 as in TensorFlow's examples; 1234 as in JAX; 6379 for Ray. MPI uses ssh.
fn default_port(framework: Framework, ssh: Option<&SshPlan>) -> u16 {
    match framework {
        Framework::Torchrun
        | Framework::Ddp
        | Framework::Deepspeed
        | Framework::Accelerate
        | Framework::Lightning
        | Framework::Composer => 29500,
        Framework::Tensorflow => 2222,
        Framework::Jax => 1234,
        Framework::Ray => 6379,
        Framework::Mpi | Framework::Horovod => ssh.map_or(22, |ssh| ssh.port),
    }
}

/// Whether the framework itself starts one process on each instance, regardless of the number of GPUs.
fn is_one_process(framework: Framework) -> bool {
    matches!(framework, Framework::Ddp | Framework::Tensorflow | Framework::Jax | Framework::Ray)
}

/// Resolves the rendezvous of a job.
pub(super) fn resolve_distributed(context: &Context<'_>, sink: &mut Sink) -> Option<Rendezvous> {
    let spec = context.job.distributed.as_ref()?;
    let root = Pointer::ROOT.key("distributed");
    let mut named = name_members(context, spec, &root.key("roles"), sink);
    check_parts(context, spec.framework, &named, sink);
    // Chief first, then workers in source order; those without a rank follow.
    named.sort_by_key(|(_, part, _)| match part {
        MemberPart::Chief | MemberPart::Head => 0,
        MemberPart::Worker => 1,
        MemberPart::Ps => 2,
        MemberPart::Evaluator => 3,
        MemberPart::Launcher => 4,
    });
    if let Some(processes) = spec.processes_per_instance.filter(|&n| n > 1 && is_one_process(spec.framework))
    {
        let name = framework_name(spec.framework);
        sink.push(
            Diagnostic::error(
                codes::PROCESSES,
                format!("`{name}` starts one process on each instance, not {processes}"),
            )
            .at(&root.key("processes_per_instance"), "")
            .note(match spec.framework {
                Framework::Ddp => "`framework: torchrun` starts one for each GPU",
                _ => "its one process uses all GPUs of the instance; remove the line",
            }),
        );
    }
    let (mut rank, mut world) = (0_u64, 0_u64);
    let mut members = Vec::with_capacity(named.len());
    for (role, part, _) in &named {
        let Some((_, facts)) = context.role(role) else { continue };
        let ranked = matches!(part, MemberPart::Chief | MemberPart::Head | MemberPart::Worker);
        let processes = match spec.processes_per_instance {
            _ if !ranked || is_one_process(spec.framework) => 1,
            Some(written) => written,
            None => facts.gpus.max(1),
        };
        let first_rank = ranked.then(|| clamp(rank));
        if ranked {
            rank += u64::from(facts.instances);
            world += u64::from(facts.instances) * u64::from(processes);
        }
        members.push(MemberPlan { role: role.clone(), part: *part, first_rank, processes });
    }
    if rank == 0 {
        if !named.is_empty() {
            sink.push(
                Diagnostic::error(codes::MEMBER_PART, "the rendezvous has no worker")
                    .at(&root.key("roles"), "")
                    .note("name at least one role that is a `worker` or the `chief`"),
            );
        }
        return None;
    }
    let launch = launch::resolve_launch(context, spec, &members, sink);
    let ssh = ssh::resolve_ssh(context, spec, &members, &launch);
    if spec.framework == Framework::Ray {
        ray::check_commands(context, &members, sink);
    } else {
        launch::check_commands(context, &members, &launch, ssh.is_some(), sink);
    }
    let own = members.iter().find(|m| m.first_rank == Some(0)).and_then(|m| own_port(context, &m.role));
    if let (Some(written), Some(own)) = (spec.port, own)
        && written != own
    {
        sink.push(
            Diagnostic::error(codes::RENDEZVOUS_PORT, "the rendezvous port is given twice")
                .at(&root.key("port"), format!("{written} here"))
                .at(
                    &Pointer::ROOT.keys(["roles", &members[0].role, "resources", "ports", RENDEZVOUS]),
                    format!("{own} here"),
                )
                .note("remove one of them"),
        );
    }
    let port = spec.port.or(own).unwrap_or_else(|| default_port(spec.framework, ssh.as_ref()));
    let elastic = elastic::resolve_elastic(context, spec, &members, sink);
    let plan = DistributedPlan {
        framework: spec.framework,
        members,
        instances: clamp(rank),
        world_size: clamp(world),
        port,
        elastic,
        ssh,
    };
    let numbers = plan.members.iter().enumerate().map(|(number, m)| (m.role.clone(), number)).collect();
    Some(Rendezvous { plan, numbers, port_written: spec.port.is_some(), launch })
}

/// The number of a role's own port with the rendezvous label, if the user sets it.
fn own_port(context: &Context<'_>, role: &str) -> Option<u16> {
    use jobc_schema::resources::{Port, PortNumber};
    match context.job.roles.get(role)?.resources.as_ref()?.ports.get(RENDEZVOUS)? {
        Port::Number(number) => Some(*number),
        Port::Rules(rules) => match rules.port {
            Some(PortNumber::Number(number)) => Some(number),
            _ => None,
        },
        Port::Auto(_) => None,
    }
}

type MemberNames = Vec<(String, MemberPart, Pointer)>;

fn name_members(context: &Context<'_>, spec: &Distributed, at: &Pointer, sink: &mut Sink) -> MemberNames {
    let listed: MemberNames = match &spec.roles {
        Members::Names(names) => names
            .iter()
            .enumerate()
            .map(|(number, role)| (role.clone(), default_part(spec.framework, role), at.index(number)))
            .collect(),
        Members::Parts(parts) => {
            parts.iter().map(|(role, part)| (role.clone(), *part, at.key(role))).collect()
        }
    };
    let mut named = MemberNames::new();
    for (role, part, place) in listed {
        if context.table.contains_key(&role) && context.variant.groups.get(&role).is_none() {
            named.push((role, part, place));
            continue;
        }
        if context.variant.groups.of_role(&role).is_some() {
            let matrix = Pointer::ROOT.keys(["roles", &role, "matrix"]);
            let diagnostic = Diagnostic::error(
                codes::MATRIX_ROLE,
                format!("`{role}` takes part in `distributed` and has a `matrix`"),
            )
            .at_key(&place, "all combinations would be one rendezvous")
            .at_key(&matrix, "its matrix")
            .note("move the matrix to the job: each combination is then a job with a rendezvous of its own");
            let to = Pointer::ROOT.key("matrix");
            let free = context.job.matrix.is_none();
            sink.push(if free {
                diagnostic.move_entry(DocumentId::Job, &matrix, &to, None)
            } else {
                diagnostic
            });
            continue;
        }
        let diagnostic = Diagnostic::error(codes::MEMBER_UNKNOWN, format!("unknown role `{role}`"));
        let roles = || context.declared_roles();
        let near = suggest::nearest(&role, roles()).or_else(|| suggest::similar(&role, roles()));
        sink.push(if let Some(near) = near {
            diagnostic.meant_key(&place, near)
        } else {
            let roles = suggest::list(roles());
            diagnostic.at_key(&place, "").note(format!("the roles are {roles}")).remove(&place)
        });
    }
    named
}

/// The default part of a listed role: given by its name if the framework distinguishes parts.
fn default_part(framework: Framework, role: &str) -> MemberPart {
    match (framework, role) {
        (Framework::Tensorflow, "chief") => MemberPart::Chief,
        (Framework::Tensorflow, "ps") => MemberPart::Ps,
        (Framework::Tensorflow, "evaluator") => MemberPart::Evaluator,
        (Framework::Ray, "head") => MemberPart::Head,
        (Framework::Mpi | Framework::Horovod | Framework::Deepspeed, "launcher") => MemberPart::Launcher,
        _ => MemberPart::Worker,
    }
}

fn check_parts(context: &Context<'_>, framework: Framework, named: &MemberNames, sink: &mut Sink) {
    let allowed: &[MemberPart] = match framework {
        Framework::Tensorflow => {
            &[MemberPart::Chief, MemberPart::Worker, MemberPart::Ps, MemberPart::Evaluator]
        }
        Framework::Mpi | Framework::Horovod | Framework::Deepspeed => {
            &[MemberPart::Chief, MemberPart::Worker, MemberPart::Launcher]
        }
        Framework::Torchrun
        | Framework::Ddp
        | Framework::Jax
        | Framework::Accelerate
        | Framework::Lightning
        | Framework::Composer => &[MemberPart::Chief, MemberPart::Worker],
        Framework::Ray => &[MemberPart::Head, MemberPart::Worker],
    };
    for (role, part, at) in named {
        if !allowed.contains(part) {
            let message = format!("`{}` has no `{}`", framework_name(framework), part_name(*part));
            sink.push(
                Diagnostic::error(codes::MEMBER_PART, message)
                    .at(at, format!("the part of `{role}`"))
                    .note(format!("its parts are {}", suggest::list(allowed.iter().map(|p| part_name(*p))))),
            );
        }
    }
    if framework == Framework::Ray
        && !named.is_empty()
        && named.iter().all(|(_, part, _)| *part != MemberPart::Head)
    {
        sink.push(
            Diagnostic::error(codes::MEMBER_PART, "the Ray cluster has no head")
                .at(&Pointer::ROOT.keys(["distributed", "roles"]), "")
                .note("name the role that runs the command, as in `roles: {driver: head, train: worker}`; a listed role `head` is the head"),
        );
    }
    for single in [MemberPart::Chief, MemberPart::Launcher, MemberPart::Head] {
        let all: Vec<_> = named.iter().filter(|(_, part, _)| *part == single).collect();
        let name = part_name(single);
        if let [(_, _, first), (_, _, second), ..] = &all[..] {
            sink.push(
                Diagnostic::error(codes::MEMBER_PART, format!("there are two roles that are `{name}`"))
                    .at_key(second, "the second")
                    .at_key(first, "the first")
                    .note("only one role can have this part; make the others `worker`"),
            );
        }
        let count = |role: &str| context.table.get(role).map_or(1, |facts| facts.instances);
        if let [(role, _, at)] = &all[..]
            && count(role) > 1
            && (single != MemberPart::Chief || framework == Framework::Tensorflow)
        {
            let instances = Pointer::ROOT.keys(["roles", role, "instances"]);
            sink.push(
                Diagnostic::error(codes::MEMBER_PART, format!("the `{name}` has {} instances", count(role)))
                    .at_key(at, "")
                    .at(&instances, "written here")
                    .note(format!(
                        "there is one {name}: write `instances: 1`, and make the others a `worker` role"
                    ))
                    .fix("write `instances: 1`", Location::value(&instances), "1", Safety::Unsafe),
            );
        }
    }
}

fn clamp(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
