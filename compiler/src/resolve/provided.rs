//! What jobc provides to every process: `JOBC_*` variables, those of the framework, of `compat` and of the target, and
//! small files.
//!
//! Of jobc's own, a role gets what it [asks for](crate::asks) and what nothing else would tell it ([`contract`]). In a
//! small job a role can see all others. In a large one it sees those that it can need, and very long lists of addresses
//! are omitted: the kernel allows at most 128 KiB in one variable.

mod contract;
mod programs;

use std::collections::BTreeSet;

use indexmap::IndexMap;
use jobc_schema::Job;
use jobc_schema::job::Compat;
use jobc_schema::plan::{FilePlan, JobPlan, Launch, MemberPlan, Reference, RolePlan, Text};
use jobc_schema::preemption::{ATTEMPT, CHECKPOINT_DIR, RESUME};
use jobc_schema::role::Role;

use super::framework::RENDEZVOUS;
use super::list_limits::{MAX_LISTED_INSTANCES, MAX_LISTED_MEMBERS, MAX_LISTED_ROLES};
use super::ports::own_port;
use super::{job_json, openpai_env, openpai_ssh, rendezvous};
use crate::asks::{self, Asks};
use crate::files::Files;
use crate::openpai::Names;

const ROLE: &str = "JOBC_ROLE";
const INDEX: &str = "JOBC_INDEX";
const INSTANCES: &str = "JOBC_INSTANCES";
/// The variable with the path of the host file.
const HOST_FILE: &str = "JOBC_HOSTFILE";

/// Sets `provided_env` and `provided_files` of every role; `names` are the job's names in OpenPAI.
///
/// A variable that the user sets is not provided.
pub(super) fn provide(plan: &mut JobPlan, job: &Job, files: &dyn Files, names: &Names<'_>) {
    let numbers: IndexMap<String, usize> =
        plan.roles.iter().enumerate().map(|(number, role)| (role.name.clone(), number)).collect();
    let members: IndexMap<&str, &MemberPlan> = plan
        .distributed
        .iter()
        .flat_map(|d| &d.members)
        .map(|member| (member.role.as_str(), member))
        .collect();
    let mut provided = Vec::with_capacity(plan.roles.len());
    for role in &plan.roles {
        let member = members.get(role.name.as_str()).copied();
        let seen: Vec<&RolePlan> = if plan.roles.len() <= MAX_LISTED_ROLES {
            plan.roles.iter().collect()
        } else {
            let seen = visible_roles(plan, role, member, &numbers);
            seen.into_iter().map(|number| &plan.roles[number]).collect()
        };
        let mut asks = Asks::of(plan, role);
        programs::read(plan, role, files, &mut asks);
        let contract = contract::contract(plan, role, &seen);
        let mut env = jobc_env(plan, role, member, &seen);
        env.retain(|name, _| {
            contract.contains(name) || name == CHECKPOINT_DIR || asks.variable(name).is_some()
        });
        let mut files = vec![job_json::job_json(plan, &seen)];
        files.retain(|file| asks.file(&file.path).is_some());
        if let (Some(distributed), Some(member)) = (&plan.distributed, member) {
            let size = |name: &str| numbers.get(name).map_or(0, |&number| plan.roles[number].instances);
            let has_port = distributed
                .members
                .iter()
                .find(|member| member.first_rank == Some(0))
                .and_then(|first| plan.roles.get(*numbers.get(&first.role)?))
                .is_some_and(|first| first.port(RENDEZVOUS).is_some());
            env.extend(rendezvous::framework_env(distributed, member, has_port, &size));
            env.extend(rendezvous::shutdown_timeout(distributed, role));
            files.extend(host_files(plan, &asks));
        }
        if plan.compat.contains(&Compat::Openpai) {
            env.extend(openpai_env::openpai_env(plan, role, &seen, names));
            let (ssh, variables) = openpai_ssh::openpai_ssh(job, plan, role, &seen, names);
            files.extend(ssh);
            env.extend(variables);
        }
        for (name, value) in &plan.target.settings.env {
            // `null` in the job removes a variable of the target, too.
            let is_own = |role: &Role| role.env.contains_key(name);
            if !job.env.contains_key(name) && !job.roles.get(&role.name).is_some_and(is_own) {
                env.entry(name.clone()).or_insert_with(|| Text::literal(value.text.clone()));
            }
        }
        env.retain(|name, _| !role.env.contains_key(name));
        files.retain(|file| role.files.iter().all(|own| own.path != file.path));
        provided.push((env, files));
    }
    for (role, (env, files)) in plan.roles.iter_mut().zip(provided) {
        role.provided_env = env;
        role.provided_files = files;
    }
}

/// The names of the variables of jobc that a role gets if it names them.
pub fn variables_by_name(plan: &JobPlan, role: &RolePlan) -> Vec<String> {
    let mut members = plan.distributed.iter().flat_map(|distributed| &distributed.members);
    let member = members.find(|member| member.role == role.name);
    let seen: Vec<&RolePlan> = plan.roles.iter().take(MAX_LISTED_ROLES).collect();
    jobc_env(plan, role, member, &seen).into_keys().collect()
}

/// The host files of a member: those that its framework reads, else those that the role asks for.
fn host_files(plan: &JobPlan, asks: &Asks) -> Vec<FilePlan> {
    let Some(distributed) = &plan.distributed else { return vec![] };
    let one_launches = plan.roles.iter().any(|role| role.launch != Launch::All);
    let mut files = rendezvous::host_files(distributed, one_launches);
    if !rendezvous::needs_host_file(distributed) {
        let is_named =
            |file: &FilePlan| asks.variable(HOST_FILE).is_some() || asks.file(&file.path).is_some();
        files.retain(|file| distributed.instances <= MAX_LISTED_INSTANCES && is_named(file));
    }
    files
}

/// `JOBC_*`: all that a role can ask for.
fn jobc_env(
    plan: &JobPlan,
    role: &RolePlan,
    member: Option<&MemberPlan>,
    seen: &[&RolePlan],
) -> IndexMap<String, Text> {
    let mut env = IndexMap::new();
    let mut put = |name: String, text: Text| env.insert(name, text);
    put("JOBC_JOB".to_owned(), Text::literal(plan.name.clone()));
    put(ROLE.to_owned(), Text::literal(role.name.clone()));
    put(INDEX.to_owned(), Text::reference(Reference::Index {}));
    put(INSTANCES.to_owned(), Text::literal(role.instances.to_string()));
    if let Some(preemption) = &plan.preemption {
        // The host and Slurm say more in later attempts.
        put(ATTEMPT.to_owned(), Text::literal("1"));
        put(RESUME.to_owned(), Text::literal(""));
        let mount = role.mounts.iter().find(|mount| Some(&mount.volume) == preemption.checkpoint.as_ref());
        if let Some(mount) = mount {
            put(CHECKPOINT_DIR.to_owned(), Text::literal(mount.path.clone()));
        }
    }
    for port in &role.ports {
        put(port_variable(&port.label), own_port(role, &port.label));
    }
    if let (Some(distributed), Some(member)) = (&plan.distributed, member) {
        // An elastic rendezvous assigns ranks when the instances meet.
        if distributed.elastic.is_none() {
            if let Some(rank) = member.first_rank {
                put("JOBC_RANK".to_owned(), rendezvous::own_number(rank));
            }
            put("JOBC_WORLD_SIZE".to_owned(), Text::literal(distributed.world_size.to_string()));
        }
        if distributed.instances <= MAX_LISTED_INSTANCES || rendezvous::needs_host_file(distributed) {
            put(HOST_FILE.to_owned(), Text::literal(rendezvous::HOST_FILE));
        }
    }
    for other in seen {
        env.extend(addresses(other));
    }
    env
}

/// The variables with the addresses of a role's instances and their ports; none of a role with too many.
fn addresses(role: &RolePlan) -> Vec<(String, Text)> {
    if role.instances > MAX_LISTED_INSTANCES {
        return vec![];
    }
    let name = upper(&role.name);
    let endpoints = role.ports.iter().map(|port| {
        (format!("JOBC_ENDPOINTS_{name}_{}", upper(&port.label)), hosts(role, Some(&port.label)))
    });
    [(format!("JOBC_HOSTS_{name}"), hosts(role, None))].into_iter().chain(endpoints).collect()
}

fn port_variable(label: &str) -> String {
    format!("JOBC_PORT_{}", upper(label))
}

fn hosts(role: &RolePlan, label: Option<&str>) -> Text {
    Text::reference(Reference::Hosts {
        role: role.name.clone(),
        label: label.map(str::to_owned),
        before: String::new(),
        after: String::new(),
        separator: ",".to_owned(),
    })
}

/// A label or role as part of a variable's name: upper case, `_` for `-`.
fn upper(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}

/// The roles that a role of a large job sees: itself, the roles it needs, its fellow members, and the roles it names.
fn visible_roles(
    plan: &JobPlan,
    role: &RolePlan,
    member: Option<&MemberPlan>,
    numbers: &IndexMap<String, usize>,
) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let mut see = |name: &str| seen.extend(numbers.get(name).copied());
    see(&role.name);
    role.needs.iter().for_each(|need| see(&need.role));
    if let (Some(distributed), Some(_)) = (&plan.distributed, member)
        && distributed.members.len() <= MAX_LISTED_MEMBERS
    {
        distributed.members.iter().for_each(|member| see(&member.role));
    }
    for reference in asks::texts(role).into_iter().flat_map(|(_, text)| text.references()) {
        match reference {
            Reference::Host { role, .. }
            | Reference::Hosts { role, .. }
            | Reference::Port { role, .. }
            | Reference::Ports { role, .. } => {
                see(role);
            }
            Reference::Index {} | Reference::Rank { .. } => {}
        }
    }
    seen.into_iter().collect()
}
