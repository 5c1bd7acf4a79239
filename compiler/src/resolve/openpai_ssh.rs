//! OpenPAI's plugin `ssh` on other targets: tasks know each other's names, and can use ssh between them.
//!
//! On OpenPAI the plugin provides it. On a single host, the names `<role>-<index>` are in `/etc/hosts`; on Kubernetes,
//! where addresses are names themselves, in a file for glibc's `HOSTALIASES`. The configuration of
//! the ssh client is [`SSH_CONFIG`]. A backend that finds that file starts an sshd, if the image has one.

use jobc_schema::job::{Compat, GangWord, Network};
use jobc_schema::plan::{FileContent, FilePlan, JobPlan, Reference, RolePlan, Text};
use jobc_schema::{BackendName, Job};
use serde_json::Value;

use super::openpai_env::NAMED_INSTANCES;
use crate::openpai::{Names, OWN_PORTS, SSH_BARRIER, SSH_CONFIG, is_on, short};

/// The names of tasks, in the format of glibc's `HOSTALIASES`; hostname(7).
const ALIASES: &str = "/etc/jobc/openpai/aliases";

/// The files of a role that uses ssh, and the variables that point to them.
pub(super) fn openpai_ssh(
    job: &Job,
    plan: &JobPlan,
    role: &RolePlan,
    seen: &[&RolePlan],
    names: &Names<'_>,
) -> (Vec<FilePlan>, Vec<(String, Text)>) {
    let none = (vec![], vec![]);
    let backends = &plan.target.settings.backends;
    let no_gang = matches!(&job.gang, Some(jobc_schema::job::Gang::Word(GangWord::None)));
    if !plan.compat.contains(&Compat::Openpai) || no_gang || backends.contains(&BackendName::Openpai) {
        return none;
    }
    let Some(plugin) = plugin_of(job, &names.role(&role.name)) else { return none };
    let mut hosts = Text::literal("127.0.0.1 localhost\n::1 localhost\n");
    let (mut aliases, mut config, mut peers) = (Text::default(), Text::default(), String::new());
    for other in seen.iter().filter(|other| plugin_of(job, &names.role(&other.name)).is_some()) {
        for index in 0..other.instances.min(NAMED_INSTANCES) {
            let alias = format!("{}-{index}", short(&names.role(&other.name)));
            let host = Reference::Host { role: other.name.clone(), index: Some(index) };
            let label = OWN_PORTS[0].to_owned();
            let port = Reference::Port { role: other.name.clone(), label, index: Some(index) };
            hosts.push_reference(host.clone());
            hosts.push_str(&format!(" {alias}\n"));
            aliases.push_str(&format!("{alias} "));
            aliases.push_reference(host.clone());
            aliases.push_str("\n");
            config.push_str(&format!("Host {alias}\n  HostName "));
            config.push_reference(host);
            config.push_str("\n  Port ");
            config.push_reference(port);
            config.push_str("\n");
            peers.push_str(&format!("{alias}\n"));
        }
    }
    config.push_str("Host *\n  User root\n  IdentityFile ~/.ssh/id_ed25519\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n");
    let mut files = vec![file(SSH_CONFIG, config)];
    if is_on(&plugin["parameters"]["sshbarrier"]) {
        files.push(file(SSH_BARRIER, Text::literal(peers)));
    }
    let mut env = vec![];
    if backends.contains(&BackendName::Kubernetes) {
        files.push(file(ALIASES, aliases));
        env.push(("HOSTALIASES".to_owned(), Text::literal(ALIASES)));
    } else if matches!(plan.network, Network::Auto | Network::Host) {
        // The job's own network resolves the names.
        files.push(file("/etc/hosts", hosts));
    }
    (files, env)
}

/// The plugin that sets up ssh for a task role, if the job has it.
fn plugin_of<'a>(job: &'a Job, role: &str) -> Option<&'a Value> {
    let is_for = |plugin: &Value| {
        let roles = plugin.get("taskroles").and_then(Value::as_array);
        roles.is_none_or(|roles| roles.iter().any(|name| name == role))
    };
    job.openpai
        .iter()
        .flat_map(|settings| &settings.plugins)
        .find(|plugin| plugin["plugin"] == "ssh" && is_on(&plugin["parameters"]["jobssh"]) && is_for(plugin))
}

fn file(path: &str, text: Text) -> FilePlan {
    FilePlan { path: path.to_owned(), content: FileContent::Text(text), mode: 0o644 }
}
