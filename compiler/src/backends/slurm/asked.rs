//! What a role asks for of what jobc provides.
//!
//! Variables of the framework, of `compat` and of the target are always given. `JOBC_*` variables are given if the role's
//! texts name them.

use jobc_schema::plan::{CommandPlan, EnvPlan, JobPlan, Piece, RolePlan, Text};

use crate::resolve::needs_host_file;

use super::run;

/// The beginning of the names of jobc's own variables.
const OWN: &str = "JOBC_";
/// Variables whose value is a file of jobc.
const HOST_FILE: &str = "JOBC_HOSTFILE";
/// Where files of jobc are.
const ETC: &str = "/etc/jobc/";

/// The provided variables that a role asks for, in the order of the plan.
pub(super) fn variables(role: &RolePlan) -> impl Iterator<Item = (&String, &Text)> {
    let named = |name: &str| texts(role).into_iter().any(|text| names(text, name));
    role.provided_env.iter().filter(move |(name, value)| {
        let is_file = value.as_literal().is_some_and(|text| text.starts_with(ETC));
        !role.env.contains_key(*name) && if name.starts_with(OWN) || is_file { named(name) } else { true }
    })
}

/// Whether a role reads a file that jobc provides.
pub(super) fn reads_files(job: &JobPlan, role: &RolePlan) -> bool {
    let needs_hosts = job.distributed.iter().any(needs_host_file)
        && run::is_ranked(job, role)
        && !run::is_mpi_step(job, role);
    needs_hosts && role.instances > 1
        || texts(role).into_iter().any(|text| names(text, HOST_FILE) || names(text, ETC))
        || variables(role).any(|(_, value)| value.as_literal().is_some_and(|text| text.starts_with(ETC)))
}

/// Whether a text names a variable, and not a longer one.
fn names(text: &Text, name: &str) -> bool {
    let literals = text.pieces().iter().filter_map(|piece| match piece {
        Piece::Literal(text) => Some(text.as_str()),
        Piece::Reference(_) => None,
    });
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    literals.into_iter().any(|literal| {
        literal.match_indices(name).any(|(at, _)| {
            let before = literal[..at].chars().next_back();
            let after = literal[at + name.len()..].chars().next();
            !before.is_some_and(is_word) && (!after.is_some_and(is_word) || name.ends_with('/'))
        })
    })
}

/// The texts of a role that its user wrote.
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
    texts
}
