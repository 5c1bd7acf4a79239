//! The scopes that expressions can use, and where.

/// The first name of an expression's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The job's parameters.
    Params,
    /// The combination of matrix values.
    Matrix,
    /// The job: `name`.
    Job,
    /// An image's build arguments.
    Args,
    /// The role that contains the text: `name`, `instances`, `gpu`.
    Role,
    /// All roles: `instances` of each.
    Roles,
    /// The rendezvous: `world_size`.
    Distributed,
    /// The addresses of each role's instances.
    Hosts,
    /// The numbers of the role's own ports, and of other roles' ports below the role's name.
    Ports,
    /// The data that the role mounts: `mount` and `source` of each.
    Data,
    /// The outputs that the role mounts: `mount` and `source` of each.
    Outputs,
    /// The secrets.
    Secrets,
    /// The instance that contains the text: its `index`.
    Instance,
}

use Scope::{
    Args, Data, Distributed, Hosts, Instance, Job, Matrix, Outputs, Params, Ports, Role, Roles, Secrets,
};

/// All scopes with their names.
const NAMES: &[(Scope, &str)] = &[
    (Params, "params"),
    (Matrix, "matrix"),
    (Job, "job"),
    (Args, "args"),
    (Role, "role"),
    (Roles, "roles"),
    (Distributed, "distributed"),
    (Hosts, "hosts"),
    (Ports, "ports"),
    (Data, "data"),
    (Outputs, "outputs"),
    (Secrets, "secrets"),
    (Instance, "instance"),
];

impl Scope {
    /// The scope of that name.
    pub fn parse(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(scope, _)| *scope)
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        NAMES.iter().find(|(scope, _)| *scope == self).map_or("", |(_, name)| name)
    }

    /// All names, in the order of the documentation.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(_, name)| *name)
    }

    /// Whether it depends only on the file and the command line.
    pub fn is_early(self) -> bool {
        matches!(self, Params | Matrix | Job)
    }

    /// Whether the names below it may contain `-`.
    pub fn names_may_have_dashes(self) -> bool {
        matches!(self, Hosts | Roles | Ports | Data | Outputs | Secrets)
    }
}

const COMMAND: &[Scope] = &[Role, Roles, Distributed, Hosts, Ports, Data, Outputs, Instance];
const TEXT: &[Scope] = &[Role, Roles, Distributed, Hosts, Ports, Data, Outputs, Secrets, Instance];
const PROBE: &[Scope] = &[Role, Roles, Distributed, Hosts, Ports, Data, Outputs];
const DIRECTORY: &[Scope] = &[Role, Roles, Distributed, Data, Outputs];

/// The scopes that a place of the job file may use besides `params`, `matrix` and `job`; spec section "Expressions".
///
/// A path is the keys from the root down, with `*` for an item of a list.
pub fn scopes_at(path: &[&str]) -> &'static [Scope] {
    match path {
        ["env", _] | ["roles", _, "env", _] | ["roles", _, "files", _, "content"] => TEXT,
        ["roles", _, "run" | "setup"] | ["roles", _, "run" | "args", "*"] => COMMAND,
        ["roles", _, "ready", "exec", "*"] => PROBE,
        ["roles", _, "workdir"] => DIRECTORY,
        ["image", block @ ..] | ["images", _, block @ ..] | ["roles", _, "image", block @ ..] => {
            match block {
                [] | ["args" | "use" | "dockerfile" | "context" | "target" | "secrets", ..] => &[],
                _ => &[Args],
            }
        }
        _ => &[],
    }
}

/// Whether a string at this place that is a single expression takes the expression's type: a number or
/// a boolean. Everywhere else it becomes text.
pub fn keeps_type(path: &[&str]) -> bool {
    let Some((last, above)) = path.split_last() else { return false };
    // In a map with user-defined names, what is below is never a key of the language.
    if let ["with", ..] | ["roles", _, "with", ..] = path {
        return true;
    }
    match above {
        ["env"] | ["roles", _, "env" | "labels"] => false,
        [.., "args"] if matches!(above.first(), Some(&"image" | &"images")) || above.contains(&"image") => {
            true
        }
        [.., "ports" | "ulimits" | "on_exit_codes" | "never_on_exit_codes"] => true,
        _ => matches!(
            *last,
            "instances"
                | "parallel"
                | "min"
                | "cpu"
                | "pids"
                | "rdma"
                | "gpu"
                | "count"
                | "cores"
                | "port"
                | "max"
                | "max_restarts"
                | "processes_per_instance"
                | "min_succeeded"
                | "min_failed"
                | "writable"
                | "unpack"
                | "keep"
                | "read_only_root"
                | "privileged"
                | "same_card"
                | "grow"
                | "time"
                | "ssh"
        ),
    }
}
