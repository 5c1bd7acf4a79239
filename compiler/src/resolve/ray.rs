//! Ray: the commands of the head and the workers.
//!
//! The head starts the cluster and then its own command, which finds it by `RAY_ADDRESS`. A worker waits until the head
//! listens, joins, and stays until the job ends: the job succeeds with the head.

use std::fmt::Write as _;

use indexmap::IndexMap;
use jobc_schema::Pointer;
use jobc_schema::distributed::MemberPart;
use jobc_schema::plan::{CommandPlan, DistributedPlan, MemberPlan, Reference, Text};
use jobc_schema::role::Role;

use super::context::Context;
use super::framework::RENDEZVOUS;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Waits until the head listens, at most 15 minutes, like torchrun.
const WAIT: &str = "\
jobc_try=0
until (exec 3<>\"/dev/tcp/$jobc_head/$jobc_port\") 2>/dev/null; do
  jobc_try=$((jobc_try + 1))
  [ \"$jobc_try\" -lt 900 ] || { echo \"jobc: the Ray head $jobc_head does not listen at port $jobc_port\" >&2; exit 1; }
  [ $((jobc_try % 30)) -ne 0 ] || echo \"jobc: waiting for the Ray head $jobc_head to listen at port $jobc_port\" >&2
  sleep 1
done
";

/// The command of a member.
pub(super) fn command(
    plan: &DistributedPlan,
    member: &MemberPlan,
    role: &Role,
    gpus: u32,
    own: CommandPlan,
) -> CommandPlan {
    let amounts = amounts(role, gpus);
    if member.part == MemberPart::Head {
        return head(plan, &amounts, own);
    }
    // The shell's own TCP support: an image with Ray need not have another program for it.
    let mut script = Text::literal("jobc_head=");
    let (host, port) = head_address(plan);
    script.push_reference(host);
    script.push_str(" jobc_port=");
    script.push_reference(port);
    script
        .push_str(&format!("\n{WAIT}exec ray start --address=\"$jobc_head:$jobc_port\"{amounts} --block\n"));
    CommandPlan::Script { shell: bash(), setup: None, script }
}

/// The variables of a member.
///
/// A worker is stopped when the head has ended. Ray 2.60 would then wait 30 seconds for work to move to other nodes.
pub(super) fn env(plan: &DistributedPlan, member: &MemberPlan) -> IndexMap<String, Text> {
    let mut env = IndexMap::from([("RAY_ADDRESS".to_owned(), address(plan))]);
    if member.part != MemberPart::Head {
        env.insert("RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S".to_owned(), Text::literal("0"));
    }
    env
}

/// The address of the head, `HOST:PORT`, for `RAY_ADDRESS`.
fn address(plan: &DistributedPlan) -> Text {
    let (host, port) = head_address(plan);
    let mut text = Text::reference(host);
    text.push_str(":");
    text.push_reference(port);
    text
}

/// Reports a head without a command, and workers with one.
pub(super) fn check_commands(context: &Context<'_>, members: &[MemberPlan], sink: &mut Sink) {
    for member in members {
        let Some((role, _)) = context.role(&member.role) else { continue };
        let at = Pointer::ROOT.keys(["roles", &member.role]);
        let name = &member.role;
        if member.part == MemberPart::Head {
            if role.run.is_none() {
                sink.push(
                    Diagnostic::error(codes::RAY_COMMAND, format!("the head `{name}` has no `run`"))
                        .at_key(&at, "")
                        .note("write the command that uses the cluster, as in `run: python train.py`; the image's own command cannot be used here"),
                );
            }
            continue;
        }
        for (key, written) in
            [("run", role.run.is_some()), ("args", role.args.is_some()), ("setup", role.setup.is_some())]
        {
            if written {
                sink.push(
                    Diagnostic::error(
                        codes::RAY_COMMAND,
                        format!("`{key}` of the worker `{name}` never runs"),
                    )
                    .at_key(&at.key(key), "a worker runs `ray start` and what the head gives it")
                    .note("remove it; the command belongs to the head, and what workers need to the image"),
                );
            }
        }
    }
}

fn head(plan: &DistributedPlan, amounts: &str, own: CommandPlan) -> CommandPlan {
    let port = Reference::Port { role: head_role(plan), label: RENDEZVOUS.to_owned(), index: Some(0) };
    // `ray start --head` starts a cluster, and must not treat its own address as another cluster to join.
    let mut start = Text::literal("env -u RAY_ADDRESS ray start --head --port=");
    start.push_reference(port);
    start.push_str(amounts);
    let before = |setup: Option<Text>| match setup {
        Some(mut setup) => {
            setup.push_str("\n");
            setup.push_text(&start);
            setup
        }
        None => start.clone(),
    };
    match own {
        // `setup` may install Ray, so it comes first; a shell that is not POSIX runs it itself.
        CommandPlan::Script { shell, setup, script } if is_posix(&shell) => {
            let argv = shell.into_iter().map(Text::literal).chain([script]).collect();
            CommandPlan::Argv { argv, setup: Some(before(setup)) }
        }
        CommandPlan::Script { shell, setup, script } => {
            let mut whole = setup.map_or_else(Text::default, |mut setup| {
                setup.push_str("\n");
                setup
            });
            whole.push_text(&script);
            let argv = shell.into_iter().map(Text::literal).chain([whole]).collect();
            CommandPlan::Argv { argv, setup: Some(start) }
        }
        CommandPlan::Argv { argv, setup } => CommandPlan::Argv { argv, setup: Some(before(setup)) },
        // Already reported: the image's command is not known here.
        other => other,
    }
}

fn is_posix(shell: &[String]) -> bool {
    let name = shell.first().map(|program| program.rsplit('/').next().unwrap_or(program));
    matches!(name, Some("bash" | "sh" | "dash" | "ash"))
}

fn bash() -> Vec<String> {
    ["bash", "-euo", "pipefail", "-c"].map(str::to_owned).to_vec()
}

/// The resources that Ray may use: the role's CPUs and GPUs, since it would otherwise count the host's.
fn amounts(role: &Role, gpus: u32) -> String {
    let mut out = String::new();
    let Some(resources) = &role.resources else { return out };
    if let Some(cpu) = resources.cpu {
        let _ = write!(out, " --num-cpus={}", (cpu.millis / 1000).max(1));
    }
    if resources.gpu.is_some() {
        let _ = write!(out, " --num-gpus={gpus}");
    }
    out
}

fn head_role(plan: &DistributedPlan) -> String {
    let head = plan.members.iter().find(|member| member.part == MemberPart::Head);
    head.or(plan.members.first()).map(|member| member.role.clone()).unwrap_or_default()
}

fn head_address(plan: &DistributedPlan) -> (Reference, Reference) {
    let role = head_role(plan);
    let port = Reference::Port { role: role.clone(), label: RENDEZVOUS.to_owned(), index: Some(0) };
    (Reference::Host { role, index: Some(0) }, port)
}
