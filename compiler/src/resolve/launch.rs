//! Which instances of a rendezvous run the command, and which ones serve them.

use indexmap::IndexSet;
use jobc_schema::Pointer;
use jobc_schema::distributed::{Distributed, Framework, MemberPart};
use jobc_schema::plan::{Launch, MemberPlan};

use super::context::Context;
use super::framework::framework_name;
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::suggest;

/// The instances that run the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Launchers {
    /// Every instance.
    All,
    /// The first instance of this role, among these members.
    One {
        /// The role.
        role: String,
        /// Whether that role has a single instance.
        alone: bool,
        /// The other members.
        others: IndexSet<String>,
    },
}

impl Launchers {
    pub(super) fn is_all(&self) -> bool {
        *self == Self::All
    }

    pub(super) fn of(&self, role: &str) -> Launch {
        match self {
            Self::One { role: launcher, alone: false, .. } if launcher == role => Launch::First,
            Self::One { others, .. } if others.contains(role) => Launch::None,
            _ => Launch::All,
        }
    }
}

/// Determines the instances that launch: the launcher role's if there is one; with MPI and DeepSpeed the first;
/// otherwise all.
///
/// A single instance starts none over ssh. MPI's launcher still needs the same setup; DeepSpeed's does not.
pub(super) fn resolve_launch(
    context: &Context<'_>,
    spec: &Distributed,
    members: &[MemberPlan],
    sink: &mut Sink,
) -> Launchers {
    let instances = |role: &str| context.table.get(role).map_or(1, |facts| facts.instances);
    let one = |role: &str| Launchers::One {
        role: role.to_owned(),
        alone: context.table.contains_key(role) && instances(role) == 1,
        others: members.iter().map(|m| m.role.clone()).filter(|other| other != role).collect(),
    };
    let first = || members.iter().find(|m| m.first_rank == Some(0)).map_or(Launchers::All, |m| one(&m.role));
    let launcher = members.iter().find(|member| member.part == MemberPart::Launcher);
    let ranked = members.iter().filter(|member| member.first_rank.is_some());
    let several = ranked.map(|member| instances(&member.role)).fold(0, u32::saturating_add) > 1;
    let at = Pointer::ROOT.keys(["distributed", "launch"]);
    let launch = match (spec.launch.as_deref(), launcher) {
        (None, Some(member)) => one(&member.role),
        (None, None) if matches!(spec.framework, Framework::Mpi | Framework::Horovod) => first(),
        (None, None) if spec.framework == Framework::Deepspeed && several => first(),
        (None | Some("all"), _) => Launchers::All,
        (Some("first"), _) => first(),
        (Some(role), _) if members.iter().any(|member| member.role == role) => one(role),
        (Some(role), _) => {
            let words = || ["all", "first"].into_iter().chain(members.iter().map(|m| m.role.as_str()));
            let message = format!("`{role}` is not a role of `distributed`");
            let diagnostic = Diagnostic::error(codes::LAUNCH, message);
            sink.push(match suggest::nearest(role, words()) {
                Some(near) => diagnostic.suggest_value(&at, role, near),
                None => diagnostic.at(&at, "").note(format!("write one of {}", suggest::list(words()))),
            });
            Launchers::All
        }
    };
    let starts_peers = matches!(spec.framework, Framework::Mpi | Framework::Horovod | Framework::Deepspeed);
    if !launch.is_all() && !starts_peers {
        let name = framework_name(spec.framework);
        let message = match spec.framework {
            Framework::Ray => "with `ray` the head runs the command".to_owned(),
            _ => format!("with `{name}` every instance runs the command"),
        };
        sink.push(
            Diagnostic::error(codes::LAUNCH, message)
                .at(&at, "the others would only wait")
                .note("remove `launch`; it is for `mpi`, `horovod` and `deepspeed`, whose first process starts the others"),
        );
        return Launchers::All;
    }
    launch
}

/// Reports commands that would never run, and launchers without a command.
pub(super) fn check_commands(
    context: &Context<'_>,
    members: &[MemberPlan],
    launch: &Launchers,
    ssh: bool,
    sink: &mut Sink,
) {
    for member in members {
        let Some((role, _)) = context.role(&member.role) else { continue };
        let at = Pointer::ROOT.keys(["roles", &member.role]);
        let name = &member.role;
        match launch.of(name) {
            Launch::None => {
                for (key, written) in [
                    ("run", role.run.is_some()),
                    ("args", role.args.is_some()),
                    ("setup", role.setup.is_some()),
                ] {
                    if written {
                        let Launchers::One { role: launcher, .. } = launch else { continue };
                        sink.push(
                            Diagnostic::error(codes::LAUNCH, format!("`{key}` of `{name}` never runs"))
                                .at_key(&at.key(key), format!("`{launcher}` starts the processes here"))
                                .note("remove it, or write `launch: all` under `distributed`")
                                .remove(&at.key(key))
                                .set(&Pointer::ROOT.keys(["distributed", "launch"]), "all"),
                        );
                    }
                }
            }
            Launch::First if role.run.is_none() => sink.push(no_command(name, &at)),
            Launch::All if ssh && role.run.is_none() => sink.push(no_command(name, &at)),
            Launch::First | Launch::All => {}
        }
    }
}

fn no_command(role: &str, at: &Pointer) -> Diagnostic {
    Diagnostic::error(codes::LAUNCH, format!("`{role}` starts the others, but has no `run`"))
        .at_key(at, "")
        .note("write the command that starts them, as in `run: mpirun python train.py`; the image's own command cannot be used here")
}
