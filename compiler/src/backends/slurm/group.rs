//! Groups: the roles that one Slurm job runs together, and the components of its allocation.
//!
//! Roles are in one group if they run at the same time, or know each other's addresses, because a job's nodes are
//! unknown when another one is submitted. An edge `needs: {other: succeeded}` between two groups becomes a dependency
//! of jobs if that means the same; otherwise both groups are merged, and their steps wait for each other.

use std::collections::{BTreeMap, BTreeSet};

use jobc_schema::plan::{CommandPlan, EnvPlan, FileContent, GangPlan, JobPlan, Reference, RolePlan, Text};
use jobc_schema::role::NeedState;
use jobc_schema::target::SlurmTarget;

use super::header;

/// Roles that one Slurm job runs.
pub(super) struct Group<'a> {
    /// The name of its script, without `.sbatch`.
    pub(super) name: String,
    /// Its roles in the order of the file.
    pub(super) roles: Vec<&'a RolePlan>,
    /// The parts of its allocation; more than one is a heterogeneous job.
    pub(super) components: Vec<Component<'a>>,
    /// The groups that must succeed first, by number.
    pub(super) after: Vec<usize>,
}

/// A part of an allocation: nodes that are all alike.
pub(super) struct Component<'a> {
    /// Its roles, each on its own nodes.
    pub(super) roles: Vec<&'a RolePlan>,
}

impl<'a> Component<'a> {
    /// How many nodes it has: one for each instance.
    pub(super) fn nodes(&self) -> u32 {
        self.roles.iter().map(|role| role.instances).sum()
    }

    /// A role with the resources of all.
    pub(super) fn model(&self) -> &'a RolePlan {
        self.roles[0]
    }
}

impl Group<'_> {
    /// Whether the allocation has parts with different nodes.
    pub(super) fn is_heterogeneous(&self) -> bool {
        self.components.len() > 1
    }

    /// Where the nodes of a role are: the number of the component, and that of the first node in it.
    pub(super) fn nodes_of(&self, role: &RolePlan) -> (usize, u32) {
        for (number, component) in self.components.iter().enumerate() {
            let mut first = 0;
            for other in &component.roles {
                if other.name == role.name {
                    return (number, first);
                }
                first += other.instances;
            }
        }
        (0, 0)
    }

    fn has(&self, name: &str) -> bool {
        self.roles.iter().any(|role| role.name == name)
    }
}

/// The groups of a job, each after those it needs.
pub(super) fn groups<'a>(job: &'a JobPlan, settings: &SlurmTarget) -> Vec<Group<'a>> {
    let mut sets = Sets::new(job);
    sets.join_concurrent(job);
    loop {
        let order = sets.order();
        let joined = match &order {
            Err(cycle) => sets.join_all(cycle),
            Ok(_) => sets.join_inexact(),
        };
        if !joined && let Ok(order) = order {
            return sets.finish(job, settings, &order);
        }
    }
}

/// How many Slurm jobs a job becomes.
pub(super) fn count(job: &JobPlan) -> usize {
    groups(job, &SlurmTarget::default()).len()
}

/// Whether all other Slurm jobs have ended before that of a role starts, so that its end is the end of all.
pub(super) fn is_last(job: &JobPlan, role: &RolePlan) -> bool {
    let groups = groups(job, &SlurmTarget::default());
    let mut before = BTreeSet::new();
    let mut next: Vec<usize> = groups
        .iter()
        .position(|group| group.roles.iter().any(|other| other.name == role.name))
        .into_iter()
        .collect();
    while let Some(number) = next.pop() {
        if before.insert(number) {
            next.extend(&groups[number].after);
        }
    }
    before.len() == groups.len()
}

/// Which set each role is in, by the number of the role.
struct Sets<'a> {
    set_of: Vec<usize>,
    number: BTreeMap<&'a str, usize>,
    /// `needs: {other: succeeded}`: the role and the other.
    edges: Vec<(usize, usize)>,
}

impl<'a> Sets<'a> {
    fn new(job: &'a JobPlan) -> Self {
        let number: BTreeMap<&str, usize> =
            job.roles.iter().enumerate().map(|(number, role)| (role.name.as_str(), number)).collect();
        let needs = |(own, role): (usize, &'a RolePlan)| role.needs.iter().map(move |need| (own, need));
        let edges = job.roles.iter().enumerate().flat_map(needs);
        let edges = edges.filter_map(|(own, need)| Some((own, *number.get(need.role.as_str())?))).collect();
        Self { set_of: (0..job.roles.len()).collect(), number, edges }
    }

    fn join(&mut self, a: usize, b: usize) -> bool {
        let (to, from) = (self.set_of[a].min(self.set_of[b]), self.set_of[a].max(self.set_of[b]));
        for set in self.set_of.iter_mut().filter(|set| **set == from) {
            *set = to;
        }
        to != from
    }

    fn join_all(&mut self, roles: &[usize]) -> bool {
        let mut joined = false;
        for pair in roles.windows(2) {
            joined |= self.join(pair[0], pair[1]);
        }
        joined
    }

    /// Joins roles that run at the same time, or name each other's addresses.
    fn join_concurrent(&mut self, job: &JobPlan) {
        let known = self.number.clone();
        let number = |name: &str| known.get(name).copied();
        let members = job.distributed.iter().flat_map(|d| &d.members).filter_map(|m| number(&m.role));
        self.join_all(&members.collect::<Vec<_>>());
        for (own, role) in job.roles.iter().enumerate() {
            for need in &role.needs {
                let Some(other) = number(&need.role) else { continue };
                if need.state != NeedState::Succeeded || need.min < job.roles[other].instances {
                    self.join(own, other);
                }
            }
            for other in named_roles(role).into_iter().filter_map(number) {
                self.join(own, other);
            }
        }
        if job.gang == GangPlan::None {
            return;
        }
        for stage in &job.stages {
            // The combinations of a matrix are independent, and separate jobs wait less.
            let together = |role: &RolePlan| role.matrix.is_none() || matches!(job.gang, GangPlan::Required);
            let roles = stage.iter().filter_map(|name| number(name));
            let roles: Vec<usize> = roles.filter(|&number| together(&job.roles[number])).collect();
            self.join_all(&roles);
        }
    }

    /// Merges groups if a dependency between them would wait too long: the first group has a role that the other does
    /// not need and that ends later.
    fn join_inexact(&mut self) -> bool {
        let needed: BTreeSet<(usize, usize)> =
            self.edges.iter().map(|(own, other)| (self.set_of[*own], *other)).collect();
        let mut roles_of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (role, set) in self.set_of.iter().enumerate() {
            roles_of.entry(*set).or_default().push(role);
        }
        let inexact = self.edges.iter().find(|(own, other)| {
            let (a, b) = (self.set_of[*other], self.set_of[*own]);
            let is_awaited = |role: &usize| needed.contains(&(b, *role)) || needed.contains(&(a, *role));
            a != b && !roles_of[&a].iter().all(is_awaited)
        });
        inexact.copied().is_some_and(|(own, other)| self.join(own, other))
    }

    /// The sets, each after those it needs; or the roles of those that need each other.
    fn order(&self) -> Result<Vec<usize>, Vec<usize>> {
        let mut before: BTreeMap<usize, BTreeSet<usize>> =
            self.set_of.iter().map(|set| (*set, BTreeSet::new())).collect();
        for (own, other) in &self.edges {
            let (own, other) = (self.set_of[*own], self.set_of[*other]);
            if own != other {
                before.entry(own).or_default().insert(other);
            }
        }
        let mut order: Vec<usize> = vec![];
        while !before.is_empty() {
            let free = before.iter().find(|(_, needed)| needed.iter().all(|set| order.contains(set)));
            let Some((&set, _)) = free else {
                let in_cycle = |role: &usize| before.contains_key(&self.set_of[*role]);
                return Err((0..self.set_of.len()).filter(in_cycle).collect());
            };
            before.remove(&set);
            order.push(set);
        }
        Ok(order)
    }

    fn finish(&self, job: &'a JobPlan, settings: &SlurmTarget, order: &[usize]) -> Vec<Group<'a>> {
        let mut groups: Vec<Group<'a>> = vec![];
        for set in order {
            let roles: Vec<&RolePlan> = job
                .roles
                .iter()
                .zip(&self.set_of)
                .filter(|(_, of)| *of == set)
                .map(|(role, _)| role)
                .collect();
            let name = if order.len() == 1 { "job".to_owned() } else { roles[0].name.clone() };
            let components = components(job, settings, &roles);
            let needs = |group: &Group<'_>| {
                roles.iter().flat_map(|role| &role.needs).any(|need| group.has(&need.role))
            };
            let after = groups.iter().enumerate().filter(|(_, group)| needs(group)).map(|(n, _)| n).collect();
            groups.push(Group { name, roles, components, after });
        }
        groups
    }
}

/// The roles of a group by what they request of a node.
fn components<'a>(job: &JobPlan, settings: &SlurmTarget, roles: &[&'a RolePlan]) -> Vec<Component<'a>> {
    let mut found: Vec<(Vec<String>, Component<'a>)> = vec![];
    for role in roles {
        let request = header::resources(job, settings, role);
        match found.iter_mut().find(|(known, _)| *known == request) {
            Some((_, component)) => component.roles.push(role),
            None => found.push((request, Component { roles: vec![role] })),
        }
    }
    found.into_iter().map(|(_, component)| component).collect()
}

/// The roles whose addresses the user's own texts name.
fn named_roles(role: &RolePlan) -> Vec<&str> {
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
    let named = texts.into_iter().flat_map(Text::references).filter_map(|reference| match reference {
        Reference::Host { role, .. }
        | Reference::Hosts { role, .. }
        | Reference::Port { role, .. }
        | Reference::Ports { role, .. } => Some(role.as_str()),
        Reference::Index {} | Reference::Rank { .. } => None,
    });
    named.filter(|name| *name != role.name).collect()
}
