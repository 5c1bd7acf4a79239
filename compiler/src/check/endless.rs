//! Programs that serve until they are stopped.

use jobc_schema::distributed::MemberPart;
use jobc_schema::plan::CommandPlan;
use jobc_schema::reference::Parts;

use super::command::Command;
use super::view::{RoleView, View};

/// Programs that serve whatever their arguments are.
const SERVERS: [&str; 14] = [
    "tensorboard",
    "jupyter-lab",
    "jupyter-notebook",
    "redis-server",
    "uvicorn",
    "gunicorn",
    "hypercorn",
    "tritonserver",
    "tensorflow_model_server",
    "text-generation-launcher",
    "code-server",
    "dask-scheduler",
    "dask-worker",
    "prometheus",
];

/// Programs that serve with a certain first argument.
const SUBCOMMANDS: [(&str, &[&str]); 7] = [
    ("jupyter", &["lab", "notebook", "server"]),
    ("vllm", &["serve"]),
    ("mlflow", &["server", "ui"]),
    ("ollama", &["serve"]),
    ("streamlit", &["run"]),
    ("dask", &["scheduler", "worker"]),
    ("sleep", &["infinity", "inf"]),
];

/// Python modules that serve.
const MODULES: [&str; 6] = [
    "http.server",
    "tensorboard.main",
    "uvicorn",
    "vllm.entrypoints.openai.api_server",
    "sglang.launch_server",
    "visdom.server",
];

/// Images of Docker Hub whose own command serves.
const IMAGES: [&str; 12] = [
    "etcd",
    "httpd",
    "influxdb",
    "mariadb",
    "memcached",
    "mongo",
    "mysql",
    "nginx",
    "postgres",
    "rabbitmq",
    "redis",
    "registry",
];

/// The program of a role's command that never exits, judging by its last program, or by its image without a command.
pub(super) fn never_ends(view: &View<'_>, role: &RoleView<'_>) -> Option<String> {
    if matches!(role.plan.command, CommandPlan::Image {}) {
        let image = view.plan.images.get(&role.plan.image)?;
        let name = Parts::of(&image.reference).name;
        return IMAGES
            .contains(&name.strip_prefix("docker.io/library/").unwrap_or(name))
            .then(|| name.to_owned());
    }
    if role.member.is_some_and(|member| member.part == MemberPart::Ps) {
        return role.commands.last().map(|command| command.program().to_owned());
    }
    role.commands.last().filter(|command| !command.background && !command.timed && serves(command)).map(
        |command| {
            if let Some(module) = command.python_module() {
                return format!("{} -m {module}", command.program());
            }
            let first = command.arguments().first().filter(|a| !a.starts_with('-') && a.len() < 20);
            let argument = first.map(|a| format!(" {a}")).unwrap_or_default();
            format!("{}{argument}", command.program())
        },
    )
}

pub(super) fn serves(command: &Command) -> bool {
    let program = command.program();
    let subcommand = || command.arguments().iter().map(String::as_str).find(|a| !a.starts_with('-'));
    SERVERS.contains(&program)
        || SUBCOMMANDS
            .iter()
            .any(|(name, words)| *name == program && subcommand().is_some_and(|s| words.contains(&s)))
        || command.python_module().is_some_and(|module| MODULES.contains(&module))
        || (program == "tail" && ["-f", "-F", "--follow"].iter().any(|flag| command.has(flag)))
        || (program == "ray" && command.has("--block"))
        || (program == "nginx" && command.arguments().iter().any(|a| a.contains("daemon off")))
        || (program == "sshd" && command.arguments().iter().any(|a| a.starts_with('-') && a.contains('D')))
}
