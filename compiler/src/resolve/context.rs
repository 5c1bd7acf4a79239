//! What the parts of the pass share: the job, and the facts that roles know about each other.

use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use jobc_schema::Job;
use jobc_schema::gpu::Gpu;
use jobc_schema::role::Role;

use crate::expand::Variant;
use crate::expression::Engine;
use crate::files::Files;
use crate::lock::Lock;

/// What the parts of the pass share.
pub(super) struct Context<'a> {
    pub(super) job: &'a Job,
    pub(super) variant: &'a Variant,
    /// The job's name, with the variant's number.
    pub(super) name: String,
    pub(super) engine: Engine,
    /// Instances and GPUs of every role.
    pub(super) table: Arc<RoleTable>,
    pub(super) files: &'a dyn Files,
    pub(super) lock: &'a Lock,
}

impl Context<'_> {
    /// The names by which a job file may refer to roles, in source order: for combinations of a role, only the
    /// role's name.
    pub(super) fn declared_roles(&self) -> impl Iterator<Item = &str> {
        let names = self.table.keys().map(|name| self.variant.groups.declared(name));
        names.collect::<IndexSet<_>>().into_iter()
    }

    /// The roles that a name in the job file stands for: the combinations of a role with a matrix, or the role itself.
    pub(super) fn roles_called<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        match self.variant.groups.of_role(name) {
            Some(groups) => groups.iter().map(String::as_str).collect(),
            None => vec![name],
        }
    }

    /// The role of that name with its facts.
    pub(super) fn role(&self, name: &str) -> Option<(&Role, RoleFacts)> {
        Some((self.job.roles.get(name)?, *self.table.get(name)?))
    }
}

/// The facts about a role that other roles may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoleFacts {
    pub(super) instances: u32,
    /// The number of GPUs, or slices, of an instance.
    pub(super) gpus: u32,
}

/// The roles by name, in source order.
pub(super) type RoleTable = IndexMap<String, RoleFacts>;

/// Collects the facts that roles know about each other.
pub(super) fn role_table(job: &Job) -> RoleTable {
    job.roles
        .iter()
        .map(|(name, role)| {
            let gpus = match role.resources.as_ref().and_then(|r| r.gpu.as_ref()) {
                Some(Gpu::Count(count)) => *count,
                Some(Gpu::Rules(rules)) => rules.count.unwrap_or(1),
                // If the host is known, its number of GPUs is in the document: see `adjust::gpus`.
                None | Some(Gpu::All(_)) => 0,
            };
            (name.clone(), RoleFacts { instances: role.instances.unwrap_or(1), gpus })
        })
        .collect()
}
