//! J0307: a rendezvous at a loopback address.

use jobc_schema::Pointer;
use serde_json::json;

use crate::check::command::{self, Command, Launcher};
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::resolve::framework_names;

/// Flags that hold the address of the rendezvous.
const FLAGS: [&str; 9] = [
    "--master-addr",
    "--rdzv-endpoint",
    "--main-process-ip",
    "--dist-url",
    "--init-method",
    "--dist-init-addr",
    "--coordinator-address",
    "--master-address",
    "--head-node-ip",
];

/// Flags of `mpirun` and `horovodrun` that list hosts.
const HOSTS: [&str; 5] = ["-H", "--host", "-host", "--hosts", "-hosts"];

/// Variables that hold it.
const VARIABLES: [&str; 8] = [
    "MASTER_ADDR",
    "PET_MASTER_ADDR",
    "PET_RDZV_ENDPOINT",
    "JAX_COORDINATOR_ADDRESS",
    "COORDINATOR_ADDRESS",
    "MAIN_PROCESS_IP",
    "DMLC_TRACKER_URI",
    "DMLC_PS_ROOT_URI",
];

/// Words that show that several instances are to meet.
const RENDEZVOUS_CALLS: [&str; 10] = [
    "nnodes",
    "num_nodes",
    "num-nodes",
    "num_machines",
    "num-machines",
    "world_size",
    "world-size",
    "WORLD_SIZE",
    "PET_NNODES",
    "JOBC_INDEX",
];

/// Warns about `localhost` if processes of several instances must meet.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in view.roles.iter().filter(|role| role.peers(view) > 1) {
        // Independent instances may each use their own address; J0301 covers those that should meet.
        if role.mentions(&["standalone"]) || (role.member.is_none() && !role.mentions(&RENDEZVOUS_CALLS)) {
            continue;
        }
        let in_command = role.commands.iter().find_map(|command| in_command(role, command));
        if let Some((written, address)) = in_command {
            let hosts = HOSTS.contains(&written.as_str());
            let found = report(view, role, &format!("`{written}`"), &address)
                .at(&role.run_at(), "")
                .note(advice(role, hosts));
            sink.push(mended(role, found, &written, &address, hosts));
        }
        if lacks_address(role) {
            let name = &role.plan.name;
            let what = "the address that `torchrun` takes without `--master-addr`";
            let found = report(view, role, what, "127.0.0.1").at(&role.run_at(), "").note(format!(
                "write `distributed: {{framework: torchrun, roles: [{name}]}}` at the top level, which sets the address of the first instance"
            ));
            let at = Pointer::ROOT.key("distributed");
            sink.push(match view.plan.distributed {
                None => found.set(&at, json!({"framework": "torchrun", "roles": [name]})),
                Some(_) => found,
            });
        }
        let member = view.plan.distributed.as_ref().zip(role.member);
        let provided = member.map(|(plan, member)| framework_names(plan, member)).unwrap_or_default();
        for name in VARIABLES {
            // Variables that `distributed` sets itself are checked by J0303.
            let Some(address) = role.constant(name).filter(|value| is_local(value)) else { continue };
            if provided.iter().any(|provided| provided == name) {
                continue;
            }
            let found = report(view, role, &format!("`{name}`"), address).at(&role.env_at(name), "");
            let found = found.note(advice(role, false));
            sink.push(if role.member.is_some() {
                found
            } else {
                found.set(&role.env_at(name), elsewhere(role, address))
            });
        }
    }
}

/// Whether torchrun is told of several instances and not where to meet: its own address then, as its `--help` says.
fn lacks_address(role: &RoleView<'_>) -> bool {
    let variables = ["PET_MASTER_ADDR", "PET_RDZV_ENDPOINT"];
    let is_told = |command: &Command| command.one_of(&["--master-addr", "--rdzv-endpoint"]).is_some();
    role.member.is_none()
        && !variables.iter().any(|name| role.has_variable(name))
        && role.commands.iter().any(|command| {
            let several = |nodes: &str| role.value(nodes).is_some_and(|nodes| nodes != "1");
            command.is_torchrun() && command.flag("--nnodes").is_some_and(several) && !is_told(command)
        })
}

/// The flag or variable of a command that holds its own address, and the address.
fn in_command(role: &RoleView<'_>, command: &Command) -> Option<(String, String)> {
    let launcher = command.launcher();
    let own = |word: &str| {
        // Of a variable that holds the address, the finding is at the variable.
        let variable = command::variables(word).any(|(name, _)| VARIABLES.contains(&name));
        if is_local(word) {
            return Some(word.to_owned());
        }
        let value = role.value(word).filter(|value| !variable && is_local(value))?;
        Some(value.to_owned())
    };
    if let Some((flag, value)) = command.one_of(&FLAGS) {
        return Some((flag.to_owned(), own(value)?));
    }
    if matches!(launcher, Some(Launcher::Mpirun | Launcher::Horovodrun)) {
        let (flag, hosts) = command.one_of(&HOSTS)?;
        let hosts = role.value(hosts)?;
        return hosts.split(',').all(is_local).then(|| (flag.to_owned(), hosts.to_owned()));
    }
    let exported = if command.program() == "export" { command.arguments() } else { &[] };
    let exported = exported.iter().filter_map(|word| word.split_once('='));
    let set = command.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(exported);
    let (name, address) =
        set.into_iter().find(|(name, value)| VARIABLES.contains(name) && is_local(value))?;
    Some((name.to_owned(), address.to_owned()))
}

fn report(view: &View<'_>, role: &RoleView<'_>, written: &str, address: &str) -> Diagnostic {
    let message = format!(
        "{written} is `{address}`, which in each of the {} instances is the instance itself: they never meet",
        role.peers(view)
    );
    Diagnostic::warning(codes::LOCAL_RENDEZVOUS, message)
}

fn advice(role: &RoleView<'_>, hosts: bool) -> String {
    if hosts {
        return "write `--hostfile \"$JOBC_HOSTFILE\"`, which lists all instances".to_owned();
    }
    let name = &role.plan.name;
    if role.member.is_some() {
        "leave it out: `distributed` sets the address of the first instance".to_owned()
    } else {
        format!(
            "write `${{{{ hosts.{name}[0] }}}}`, or use `distributed`, which sets the address of the first instance"
        )
    }
}

/// The same address at the first instance.
fn elsewhere(role: &RoleView<'_>, address: &str) -> String {
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    let port =
        rest.rsplit_once(':').filter(|_| rest != "::1").map_or(String::new(), |(_, port)| format!(":{port}"));
    let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    format!("{scheme}${{{{ hosts.{}[0] }}}}{port}", role.plan.name)
}

/// Offers another address, or the hosts, in the command.
fn mended(role: &RoleView<'_>, found: Diagnostic, written: &str, address: &str, hosts: bool) -> Diagnostic {
    if role.member.is_some() && !hosts {
        return found;
    }
    let mut found = found;
    for between in ["=", " "] {
        let new = if hosts {
            "--hostfile \"$JOBC_HOSTFILE\"".to_owned()
        } else {
            format!("{written}{between}{}", elsewhere(role, address))
        };
        found = found.reword(&role.run_at(), &format!("{written}{between}{address}"), &new);
    }
    found
}

/// Whether an address is the instance's own: `localhost`, `127.0.0.1:29500`, `tcp://localhost:1`.
fn is_local(address: &str) -> bool {
    // The shell of each instance expands it differently.
    if ["$(hostname", "`hostname", "$HOSTNAME", "${HOSTNAME}"].iter().any(|own| address.starts_with(own)) {
        return true;
    }
    let address = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = if address.starts_with("[::1]") || address == "::1" {
        "localhost"
    } else {
        address.split([':', '/']).next().unwrap_or(address)
    };
    let loopback =
        host.strip_prefix("127.").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'));
    host == "localhost" || host == "0.0.0.0" || loopback
}
