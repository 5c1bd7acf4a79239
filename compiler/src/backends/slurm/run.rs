//! The command of an instance: its image, its arguments, and how it reaches other nodes.

use std::fmt::Write as _;

use jobc_schema::distributed::Framework;
use jobc_schema::gpu::Vendor;
use jobc_schema::plan::{
    CommandPlan, EnvPlan, FileContent, FilePlan, ImageSource, JobPlan, Launch, RolePlan, Text,
};
use jobc_schema::reference::{Parts as ReferenceParts, split_registry};
use jobc_schema::shell::quote;
use jobc_schema::target::{SlurmContainer, SlurmTarget, image_file_name};

use crate::backend::signals::{self, Way};
use crate::backend::{Content, File, command, preflight};
use crate::diagnostic::{Diagnostic, Sink, codes};

use super::parts::Parts;
use super::shell::{Filling, variable};
use super::volumes::{self, Places};
use super::{contained, header};

/// Lets the shell of a script outlive SIGTERM where its program gets it, too: it waits for the program then, which does not
/// inherit this.
const TRAP: &str = "trap \"${jobc_trap--}\" TERM; unset jobc_trap\n";

/// Stands for `ssh` in the tasks of programs that start processes on other nodes.
const REMOTE_SHELL: &str = include_str!("remote_shell.sh");

/// Reports images that cannot be used.
pub(super) fn check_images(job: &JobPlan, settings: &SlurmTarget, sink: &mut Sink) {
    if settings.container != SlurmContainer::None {
        return;
    }
    for image in job.images.values().filter(|image| !matches!(image.source, ImageSource::Host { .. })) {
        let message =
            format!("`container: none` runs on the files of the nodes, not on `{}`", image.reference);
        sink.push(Diagnostic::info(codes::SLURM_NO_IMAGE, message).at_key(&image.declared_at, ""));
    }
}

/// The files that a role gets, jobc's own first.
pub(super) fn files(role: &RolePlan) -> impl Iterator<Item = &FilePlan> {
    let own =
        role.provided_files.iter().filter(|file| !role.files.iter().any(|other| other.path == file.path));
    own.chain(&role.files)
}

/// Whether a role is in the rank space of the job's rendezvous.
pub(super) fn is_ranked(job: &JobPlan, role: &RolePlan) -> bool {
    let members = job.distributed.iter().flat_map(|d| &d.members);
    members.filter(|m| m.role == role.name).any(|m| m.first_rank.is_some())
}

/// Whether Slurm starts the processes of a role as the ranks of a program that uses MPI.
pub(super) fn is_mpi_step(job: &JobPlan, role: &RolePlan) -> bool {
    let is_mpi = job
        .distributed
        .as_ref()
        .is_some_and(|distributed| matches!(distributed.framework, Framework::Mpi | Framework::Horovod));
    is_mpi && role.launch == Launch::All && is_ranked(job, role)
}

/// Whether an instance of a role starts processes on the other nodes.
pub(super) fn reaches_others(job: &JobPlan, role: &RolePlan) -> bool {
    is_reached(job, role) && role.launch != Launch::None
}

/// Whether an instance of another role may start processes on the nodes of a role, or a role's own first one.
pub(super) fn is_reached(job: &JobPlan, role: &RolePlan) -> bool {
    job.distributed
        .as_ref()
        .is_some_and(|d| d.ssh.is_some() && d.members.iter().any(|member| member.role == role.name))
}

/// The words that the instances of a role run, without what a container adds.
///
/// Processes on other nodes are started through Slurm, so nothing serves or waits for ssh.
pub(super) fn argv(job: &JobPlan, role: &RolePlan) -> Vec<Text> {
    let mut words = plain_argv(job, role);
    if waits_for_program(role)
        && let Some(script) = words.last_mut()
    {
        let mut trapped = Text::literal(TRAP);
        trapped.push_text(script);
        *script = trapped;
    }
    preflight::before(job, role, words)
}

/// Whether the role's script is in a shell that waits for a program, which a signal to the shell does not reach.
pub(super) fn waits_for_program(role: &RolePlan) -> bool {
    let CommandPlan::Script { setup, script, .. } = &role.command else { return false };
    let plain = script.render(|_| "$(X)".to_owned());
    signals::shell(role)
        .is_some_and(|shell| setup.is_some() || signals::way(shell, &plain, "TERM") != Way::Itself)
}

fn plain_argv(job: &JobPlan, role: &RolePlan) -> Vec<Text> {
    if !reaches_others(job, role) && role.launch == Launch::All {
        return command::argv(job, role).unwrap_or_default();
    }
    match &role.command {
        CommandPlan::Image {} => vec![],
        CommandPlan::Args(args) => args.clone(),
        CommandPlan::Argv { argv, setup: None } => argv.clone(),
        CommandPlan::Argv { argv, setup: Some(setup) } => {
            let mut script = setup.clone();
            script.push_str("\nexec \"$@\"");
            let shell = ["bash", "-euo", "pipefail", "-c"].map(Text::literal);
            shell.into_iter().chain([script, Text::literal("bash")]).chain(argv.iter().cloned()).collect()
        }
        CommandPlan::Script { shell, setup, script } => {
            let mut text = setup.clone().unwrap_or_default();
            if setup.is_some() {
                text.push_str("\n");
            }
            text.push_text(script);
            shell.iter().map(|word| Text::literal(word.clone())).chain([text]).collect()
        }
    }
}

/// The command line of an instance, in its container.
pub(super) fn command_line(parts: &Parts<'_>, role: &RolePlan) -> String {
    let filling = Filling { job: parts.job, ports: &parts.ports, role };
    let own = filling.words(&argv(parts.job, role));
    match parts.container() {
        SlurmContainer::None | SlurmContainer::Pyxis | SlurmContainer::Oci => own,
        SlurmContainer::Apptainer => format!("{} {own}", apptainer(parts, role, &Places::NODE)),
        SlurmContainer::Jobc => jobc(parts, role),
    }
}

pub(super) fn apptainer(parts: &Parts<'_>, role: &RolePlan, places: &Places) -> String {
    let vendor = role.gpus().map(|gpu| gpu.vendor);
    let mut text = match &role.command {
        CommandPlan::Image {} | CommandPlan::Args(_) => "apptainer run".to_owned(),
        _ => "apptainer exec".to_owned(),
    };
    text.push_str(match vendor {
        Some(Vendor::Nvidia) => " --nv",
        Some(Vendor::Amd) => " --rocm",
        _ => "",
    });
    text.push_str(" --no-home");
    if let Some(workdir) = &role.workdir {
        let _ = write!(text, " --pwd {}", quote(workdir));
    }
    for bind in volumes::binds(parts, role, places) {
        let _ = write!(text, " --bind {bind}");
    }
    // A direct script writes none.
    for file in files(role).filter(|_| places.is_node()) {
        let _ = write!(text, " --bind \"$jobc_etc\"{0}:{0}", quote(&file.path));
    }
    let image = match &parts.settings.images {
        Some(directory) => image_file(directory, reference(parts.job, role), ".sif"),
        None => quote(&format!("docker://{}", reference(parts.job, role))),
    };
    let _ = write!(text, " {image}");
    text
}

fn jobc(parts: &Parts<'_>, role: &RolePlan) -> String {
    let root = if is_host(parts.job, role) {
        " --root host".to_owned()
    } else {
        format!(" \"${{jobc_from[@]}}\"{}", contained::image_root(parts))
    };
    let secrets = if uses_secrets(role) { " --secrets \"$jobc_secrets\"" } else { "" };
    let mpi = if is_mpi_step(parts.job, role) { " --mpi" } else { "" };
    let program = parts.program();
    // Attempts of a task and of a requeued job may be on one node, and the first may have been killed: the name ends with
    // the number of the agent that started this one.
    format!(
        "{program} run --cgroup inherited{root}{secrets}{mpi} --id \"$SLURM_JOB_ID-$jobc_role-$jobc_index-$PPID\" \"$jobc_bundle\""
    )
}

/// Whether a role runs on the files of the node.
pub(super) fn is_host(job: &JobPlan, role: &RolePlan) -> bool {
    matches!(job.image_of(role).map(|image| &image.source), Some(ImageSource::Host { .. }))
}

/// Whether variables or files of a role are secrets.
pub(super) fn uses_secrets(role: &RolePlan) -> bool {
    let is_secret = |file: &FilePlan| matches!(file.content, FileContent::Secret { .. });
    role.env.values().any(|value| matches!(value, EnvPlan::Secret { .. })) || role.files.iter().any(is_secret)
}

/// The line that finds the files of a role's image; none for the node's own files.
pub(super) fn find_root(parts: &Parts<'_>, role: &RolePlan) -> Option<String> {
    let image = parts.job.image_of(role)?;
    if matches!(image.source, ImageSource::Host { .. }) {
        return None;
    }
    let file = image_file_name(&image.reference);
    // `jobc submit` brings images that the directory of the target does not have.
    let mut places = vec![format!("\"$jobc_directory\"/images/{file}")];
    if let Some(directory) = &parts.settings.images {
        places.insert(0, format!("{}/{file}", quote(directory)));
    }
    Some(format!("jobc_image {}", places.join(" ")))
}

/// The image as enroot spells it: `REGISTRY#PATH:TAG`, or a file.
pub(super) fn enroot_image(parts: &Parts<'_>, role: &RolePlan) -> String {
    let reference = reference(parts.job, role);
    if let Some(directory) = &parts.settings.images {
        return image_file(directory, reference, ".sqsh");
    }
    quote(&enroot_reference(reference))
}

/// A digest takes the place of the tag, which all releases read: before enroot 4.0, what is before an `@` is a user.
/// Docker Hub is the default; its name led to another host before April 2026.
pub(super) fn enroot_reference(reference: &str) -> String {
    let parts = ReferenceParts::of(reference);
    let name = match split_registry(parts.name) {
        ("docker.io" | "registry-1.docker.io", path) => path.to_owned(),
        (host, path) => format!("{host}#{path}"),
    };
    match parts.digest.or(parts.tag) {
        Some(version) => format!("{name}:{version}"),
        None => name,
    }
}

/// The file of an image in a directory of images; the job may name it with its ending.
fn image_file(directory: &str, reference: &str, ending: &str) -> String {
    let name = image_file_name(reference);
    let ending = if name.ends_with(ending) { "" } else { ending };
    format!("{}/{name}{ending}", quote(directory))
}

fn reference<'a>(job: &'a JobPlan, role: &RolePlan) -> &'a str {
    job.image_of(role).map_or("", |image| &image.reference)
}

/// `bin/ssh`, where programs of the job call ssh to start processes on other nodes.
pub(super) fn remote_shell(parts: &Parts<'_>) -> Option<File> {
    let reaching = parts.job.roles.iter().any(|role| reaches_others(parts.job, role));
    if !reaching || parts.container() != SlurmContainer::None {
        return None;
    }
    let mut text =
        "#!/bin/bash\n# Starts a command on another node of the job by srun, for programs that call ssh.\n"
            .to_owned();
    text.push_str(". \"$jobc_addresses\"\n");
    text.push_str("jobc_options() { # ROLE\n  case $1 in\n");
    for role in parts.job.roles.iter().filter(|role| is_ranked(parts.job, role)) {
        let options = header::step_resources(parts.job, parts.settings, role).join(" ");
        let _ = writeln!(text, "    {}) echo {options} ;;", role.name);
    }
    text.push_str("  esac\n}\n");
    let ranked: Vec<String> = parts
        .job
        .roles
        .iter()
        .filter(|role| is_ranked(parts.job, role))
        .map(|role| format!("[{}]=\"${{jobc_hosts_{}[*]}}\"", role.name, variable(&role.name)))
        .collect();
    let _ = writeln!(text, "declare -A jobc_ranked=({})", ranked.join(" "));
    text.push_str(REMOTE_SHELL);
    let mut file = File::new("bin/ssh", Content::Text(text));
    file.mode = 0o755;
    Some(file)
}

/// Variables that make launchers start processes through `bin/ssh`, which Slurm's own would block: the nodes are taken
/// by the step that launches.
pub(super) fn launcher_environment(job: &JobPlan) -> &'static [(&'static str, &'static str)] {
    match job.distributed.as_ref().map(|distributed| distributed.framework) {
        Some(Framework::Mpi | Framework::Horovod) => &[
            ("OMPI_MCA_plm", "rsh"),
            ("OMPI_MCA_plm_rsh_agent", "ssh"),
            ("PRTE_MCA_plm", "ssh"),
            ("HYDRA_LAUNCHER", "ssh"),
            ("I_MPI_HYDRA_BOOTSTRAP", "ssh"),
        ],
        Some(Framework::Deepspeed) => &[("PDSH_RCMD_TYPE", "ssh")],
        _ => &[],
    }
}
