//! The arguments that an instance is started with: script, setup, and the commands of instances that do not launch.

use jobc_schema::distributed::Framework;
use jobc_schema::plan::{CommandPlan, JobPlan, Launch, Reference, RolePlan, SshPlan, Text};

use crate::openpai::has_ssh;

/// Finds the home directory that ssh and sshd use. First of all parts.
const SSH_USER: &str = include_str!("command/ssh_user.sh");

/// Sets up sshd. The host keys are generated at the start, because they are not checked inside a job; the user's keys
/// come from `/etc/jobc/ssh`, which the executor of the plan mounts there.
///
/// An sshd of another user than root lets only that user in. It reads no settings of the image, which may be for root
/// alone, as the directory of host keys and the PID file are.
///
/// sshd starts commands with an almost empty environment. Each login gets the variables of the instance instead
/// (sshd(8), `~/.ssh/environment`), so that all ranks have the same ones. They may be secrets: the file is in memory.
/// A line cannot hold a value with line breaks.
const SSH_SERVER: &str = include_str!("command/ssh_server.sh");

/// The command of instances that do not launch, after [`SSH_SERVER`] and [`SSH_CLIENT`]. They log in as well: above 64
/// instances, Open MPI starts some from others.
const SSH_SERVE: &str = "exec \"$jobc_sshd\" -D -e $jobc_sshd_options\n";

/// The command of instances that both launch and serve, after [`SSH_SERVER`].
const SSH_SERVE_BESIDE: &str = "\"$jobc_sshd\" $jobc_sshd_options\n";

/// Sets up the key and the settings with which an instance logs in to the others.
const SSH_CLIENT: &str = include_str!("command/ssh_client.sh");

/// Waits until every peer answers by ssh; run by the instance that launches, after [`SSH_CLIENT`].
const SSH_BARRIER: &str = include_str!("command/ssh_barrier.sh");

/// Sets up ssh between the tasks of a job from OpenPAI, if the image has an sshd; prints a message if it has none.
const SSH_OPENPAI: &str = include_str!("command/ssh_openpai.sh");

/// Idles until the job ends.
const IDLE: &str = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done\n";

/// The whole argument list of a role, or nothing where the image's own command runs.
///
/// For [`CommandPlan::Args`], the list follows the image's ENTRYPOINT; see [`keeps_entrypoint`].
pub fn argv(job: &JobPlan, role: &RolePlan) -> Option<Vec<Text>> {
    let ssh = job.distributed.as_ref().and_then(|d| d.ssh.as_ref()).filter(|_| is_member(job, role));
    let own = match &role.command {
        CommandPlan::Image {} => None,
        CommandPlan::Args(args) => Some(args.clone()),
        CommandPlan::Argv { argv, setup: None } => Some(argv.clone()),
        CommandPlan::Argv { argv, setup: Some(setup) } => {
            let mut script = setup.clone();
            script.push_str("\nexec \"$@\"");
            Some(
                bash(script).into_iter().chain([Text::literal("bash")]).chain(argv.iter().cloned()).collect(),
            )
        }
        CommandPlan::Script { shell, setup, script } => {
            let mut text = setup.clone().unwrap_or_default();
            if setup.is_some() {
                text.push_str("\n");
            }
            text.push_text(script);
            Some(shell.iter().map(|s| Text::literal(s.clone())).chain([text]).collect())
        }
    };
    let serve = || match ssh {
        Some(ssh) => ssh_script(&[SSH_SERVER, SSH_CLIENT, SSH_SERVE], ssh, role),
        None => Text::literal(IDLE),
    };
    match role.launch {
        Launch::All if ssh.is_some() => {
            let ssh = ssh?;
            // Ranked instances serve: where all launch they reach each other, and DeepSpeed reaches its own host by ssh
            // too. An instance that launches for others waits for them; if all launch, there is nothing to wait for.
            let ranked = is_ranked(job, role);
            let mut parts = if ranked { vec![SSH_SERVER, SSH_SERVE_BESIDE] } else { vec![] };
            parts.push(SSH_CLIENT);
            if !ranked || job.roles.iter().any(|role| role.launch == Launch::None) {
                parts.push(SSH_BARRIER);
            }
            let prelude = ssh_script(&parts, ssh, role);
            own.map(|own| behind(prelude, own))
        }
        Launch::All if has_ssh(role) => own.map(|own| behind(Text::literal(SSH_OPENPAI), own)),
        Launch::All => own,
        Launch::None => Some(bash(serve())),
        Launch::First => {
            let mut prelude = Text::literal("if [ \"");
            prelude.push_reference(Reference::Index {});
            prelude.push_str("\" != 0 ]; then\n");
            prelude.push_text(&serve());
            prelude.push_str("fi\n");
            if let Some(ssh) = ssh {
                // mpirun starts the processes of its own host itself; DeepSpeed starts those too by ssh.
                let parts: &[&str] = if is_deepspeed(job) {
                    &[SSH_SERVER, SSH_SERVE_BESIDE, SSH_CLIENT, SSH_BARRIER]
                } else {
                    &[SSH_CLIENT, SSH_BARRIER]
                };
                prelude.push_text(&ssh_script(parts, ssh, role));
            }
            own.map(|own| behind(prelude, own))
        }
    }
}

/// Whether the arguments follow the image's ENTRYPOINT instead of its CMD.
pub fn keeps_entrypoint(role: &RolePlan) -> bool {
    matches!(role.command, CommandPlan::Args(_)) && role.launch == Launch::All
}

/// Whether a role takes part in the job's rendezvous.
pub fn is_member(job: &JobPlan, role: &RolePlan) -> bool {
    job.distributed.as_ref().is_some_and(|d| d.members.iter().any(|m| m.role == role.name))
}

fn is_deepspeed(job: &JobPlan) -> bool {
    job.distributed.as_ref().is_some_and(|d| d.framework == Framework::Deepspeed)
}

/// Whether a role is in the rank space of the job's rendezvous.
fn is_ranked(job: &JobPlan, role: &RolePlan) -> bool {
    let members = job.distributed.iter().flat_map(|d| &d.members);
    members.filter(|m| m.role == role.name).any(|m| m.first_rank.is_some())
}

/// `bash -euo pipefail -c SCRIPT`.
fn bash(script: Text) -> Vec<Text> {
    ["bash", "-euo", "pipefail", "-c"].into_iter().map(Text::literal).chain([script]).collect()
}

/// Runs a prelude, then replaces it by the arguments.
fn behind(mut prelude: Text, own: Vec<Text>) -> Vec<Text> {
    prelude.push_str("exec \"$@\"\n");
    bash(prelude).into_iter().chain([Text::literal("bash")]).chain(own).collect()
}

/// The variables that the parts read, then the parts.
fn ssh_script(parts: &[&str], ssh: &SshPlan, role: &RolePlan) -> Text {
    let mut text =
        Text::literal(format!("JOBC_SSH_PORT={} JOBC_SSH_USER={} JOBC_SSH_SELF=", ssh.port, ssh.user));
    text.push_reference(Reference::Host { role: role.name.clone(), index: None });
    text.push_str("\n");
    text.push_str(SSH_USER);
    for part in parts {
        text.push_str(part);
    }
    text
}
