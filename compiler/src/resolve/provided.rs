//! What jobc provides to every process: `JOBC_*` variables, those of the framework, of `compat` and of the target, and
//! small files.
//!
//! In a small job every role gets all addresses. In a large one a role gets those of roles that it can need, and very
//! long lists of addresses are omitted: the kernel allows at most 128 KiB in one variable.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use jobc_schema::Job;
use jobc_schema::job::Compat;
use jobc_schema::plan::{
    CommandPlan, EnvPlan, FileContent, JobPlan, Launch, MemberPlan, ProbePlan, Reference, RolePlan, Text,
};
use jobc_schema::role::Role;

use super::framework::RENDEZVOUS;
use super::list_limits::{MAX_LISTED_INSTANCES, MAX_LISTED_MEMBERS, MAX_LISTED_ROLES};
use super::ports::own_port;
use super::{job_json, openpai_env, openpai_ssh, rendezvous};
use crate::openpai::Names;

/// Sets `provided_env` and `provided_files` of every role; `names` are the job's names in OpenPAI.
///
/// A variable that the user sets is not provided.
pub(super) fn provide(plan: &mut JobPlan, job: &Job, names: &Names<'_>) {
    let numbers: IndexMap<String, usize> =
        plan.roles.iter().enumerate().map(|(number, role)| (role.name.clone(), number)).collect();
    let members: IndexMap<&str, &MemberPlan> = plan
        .distributed
        .iter()
        .flat_map(|d| &d.members)
        .map(|member| (member.role.as_str(), member))
        .collect();
    let everybody: Vec<usize> = (0..plan.roles.len()).collect();
    let one_launches = plan.roles.iter().any(|role| role.launch != Launch::All);
    let mut provided = Vec::with_capacity(plan.roles.len());
    for role in &plan.roles {
        let member = members.get(role.name.as_str()).copied();
        let seen = if plan.roles.len() <= MAX_LISTED_ROLES {
            everybody.clone()
        } else {
            visible_roles(plan, role, member, &numbers)
        };
        let seen: Vec<&RolePlan> = seen.iter().map(|&number| &plan.roles[number]).collect();
        let mut env = jobc_env(plan, role, member, &seen);
        let mut files = vec![job_json::job_json(plan, &seen)];
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
            if distributed.instances <= MAX_LISTED_INSTANCES || rendezvous::needs_host_file(distributed) {
                env.insert("JOBC_HOSTFILE".to_owned(), Text::literal(rendezvous::HOST_FILE));
                files.extend(rendezvous::host_files(distributed, one_launches));
            }
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

/// `JOBC_*`; spec section "What a process sees".
fn jobc_env(
    plan: &JobPlan,
    role: &RolePlan,
    member: Option<&MemberPlan>,
    seen: &[&RolePlan],
) -> IndexMap<String, Text> {
    let mut env = IndexMap::new();
    let mut put = |name: String, text: Text| env.insert(name, text);
    put("JOBC_JOB".to_owned(), Text::literal(plan.name.clone()));
    put("JOBC_ROLE".to_owned(), Text::literal(role.name.clone()));
    put("JOBC_INDEX".to_owned(), Text::reference(Reference::Index {}));
    put("JOBC_INSTANCES".to_owned(), Text::literal(role.instances.to_string()));
    for port in &role.ports {
        put(format!("JOBC_PORT_{}", upper(&port.label)), own_port(role, &port.label));
    }
    // An elastic rendezvous assigns ranks when the instances meet.
    let fixed = plan.distributed.as_ref().filter(|distributed| distributed.elastic.is_none());
    if let (Some(distributed), Some(member)) = (fixed, member) {
        if let Some(rank) = member.first_rank {
            put("JOBC_RANK".to_owned(), rendezvous::own_number(rank));
        }
        put("JOBC_WORLD_SIZE".to_owned(), Text::literal(distributed.world_size.to_string()));
    }
    for other in seen.iter().filter(|other| other.instances <= MAX_LISTED_INSTANCES) {
        let name = upper(&other.name);
        put(format!("JOBC_HOSTS_{name}"), hosts(other, None));
        for port in &other.ports {
            put(format!("JOBC_ENDPOINTS_{name}_{}", upper(&port.label)), hosts(other, Some(&port.label)));
        }
    }
    env
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
    for reference in texts(role).into_iter().flat_map(Text::references) {
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

/// The texts of a role that the user wrote.
fn texts(role: &RolePlan) -> Vec<&Text> {
    let mut texts: Vec<&Text> = match &role.command {
        CommandPlan::Image {} => vec![],
        CommandPlan::Args(args) => args.iter().collect(),
        CommandPlan::Argv { argv, setup } => argv.iter().chain(setup).collect(),
        CommandPlan::Script { setup, script, .. } => setup.iter().chain([script]).collect(),
    };
    texts.extend(role.env.values().filter_map(|value| match value {
        EnvPlan::Text(text) => Some(text),
        EnvPlan::Secret { .. } => None,
    }));
    texts.extend(role.files.iter().filter_map(|file| match &file.content {
        FileContent::Text(text) => Some(text),
        FileContent::Secret { .. } => None,
    }));
    if let Some(ProbePlan::Exec(exec)) = role.ready.as_ref().map(|ready| &ready.probe) {
        texts.extend(exec);
    }
    texts
}
