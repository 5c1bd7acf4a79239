//! The variables and files with which a framework's processes find each other.
//!
//! One function per framework; the names are the frameworks' own. Comments say what is set and what is
//! intentionally not set.

use indexmap::IndexMap;
use jobc_schema::distributed::{Framework, MemberPart};
use jobc_schema::plan::{
    DistributedPlan, ElasticPlan, FileContent, FilePlan, MemberPlan, Reference, RolePlan, Text,
};

use super::framework::{RENDEZVOUS, part_name};
use super::ray;

/// The host file of MPI and DeepSpeed: `HOST slots=N`, a line for each instance with a rank.
pub(super) const HOST_FILE: &str = "/etc/jobc/hostfile";
/// The same for MPICH and Intel MPI: `HOST:N`.
const HYDRA_FILE: &str = "/etc/jobc/hostfile.hydra";
/// The default path of the host file of `deepspeed`.
const DEEPSPEED_FILE: &str = "/job/hostfile";

/// What torchrun waits by itself.
pub(crate) const SHUTDOWN_SECONDS: u64 = 30;

type Env = IndexMap<String, Text>;

/// The framework's own variables for the instances of a member; `has_port` is set if the first instance listens at a
/// rendezvous port.
pub(super) fn framework_env(
    plan: &DistributedPlan,
    member: &MemberPlan,
    has_port: bool,
    instances: &dyn Fn(&str) -> u32,
) -> Env {
    let mut env = Env::new();
    let Some(first) = plan.members.iter().find(|member| member.first_rank == Some(0)) else { return env };
    match plan.framework {
        Framework::Torchrun => torchrun(plan, first, member, &mut env),
        Framework::Ddp => ddp(plan, first, member, &mut env),
        Framework::Tensorflow => {
            env.insert("TF_CONFIG".to_owned(), tf_config(plan, member, instances));
        }
        Framework::Mpi | Framework::Horovod => mpi(plan, first, has_port, &mut env),
        Framework::Deepspeed => {
            torchrun(plan, first, member, &mut env);
            master(first, &mut env);
        }
        Framework::Jax => jax(plan, first, member, &mut env),
        // `accelerate launch` reads flags, and its own torchrun sets these in every process.
        Framework::Accelerate => master(first, &mut env),
        Framework::Lightning => lightning(first, member, &mut env),
        Framework::Composer => composer(plan, first, member, &mut env),
        Framework::Ray => env = ray::env(plan, member),
    }
    env
}

/// The names that [`framework_env`] may set in a member's instances, unless the user sets them.
pub(crate) fn framework_names(plan: &DistributedPlan, member: &MemberPlan) -> Vec<String> {
    framework_env(plan, member, true, &|_| 1).into_keys().collect()
}

/// torchrun reads every flag from `PET_<FLAG>`. RANK and WORLD_SIZE are not set: torchrun sets them itself, for each
/// process. The static rendezvous is its default, so PET_RDZV_BACKEND stays unset.
fn torchrun(plan: &DistributedPlan, first: &MemberPlan, member: &MemberPlan, env: &mut Env) {
    let Some(rank) = member.first_rank else { return };
    if let Some(elastic) = &plan.elastic {
        return elastic_torchrun(elastic, first, member, env);
    }
    put(env, "PET_NNODES", plan.instances);
    put(env, "PET_NPROC_PER_NODE", member.processes);
    env.insert("PET_NODE_RANK".to_owned(), own_number(rank));
    env.insert("PET_MASTER_ADDR".to_owned(), address(first));
    env.insert("PET_MASTER_PORT".to_owned(), port(first));
}

/// How long torchrun's agent waits after SIGTERM before it kills its processes, in seconds, where the role has longer
/// than [`SHUTDOWN_SECONDS`]. PyTorch reads the variable from release 2.12 on.
pub(super) fn shutdown_timeout(plan: &DistributedPlan, role: &RolePlan) -> Option<(String, Text)> {
    let seconds = role.grace_period_seconds;
    let name = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT".to_owned();
    // `accelerate launch` runs torchrun in its own process.
    (matches!(plan.framework, Framework::Torchrun | Framework::Accelerate) && seconds > SHUTDOWN_SECONDS)
        .then(|| (name, Text::literal(seconds.to_string())))
}

/// Elastic torchrun assigns the ranks at each rendezvous, so neither a rank nor a master is set.
///
/// torchrun uses the address to find out whether the c10d store is on this instance. `is_host` is not set:
/// instances that share one address all take themselves for the host, and all but the first then connect.
fn elastic_torchrun(elastic: &ElasticPlan, first: &MemberPlan, member: &MemberPlan, env: &mut Env) {
    let mut text = |name: &str, value: String| env.insert(name.to_owned(), Text::literal(value));
    text("PET_NNODES", format!("{}:{}", elastic.min, elastic.max));
    text("PET_RDZV_BACKEND", elastic.backend.as_str().to_owned());
    text("PET_RDZV_ID", elastic.id.clone());
    let endpoint = if let Some(endpoint) = &elastic.endpoint {
        Text::literal(endpoint.clone())
    } else {
        let mut both = address(first);
        both.push_str(":");
        both.push_text(&port(first));
        both
    };
    env.insert("PET_RDZV_ENDPOINT".to_owned(), endpoint);
    put(env, "PET_NPROC_PER_NODE", member.processes);
    put(env, "PET_MAX_RESTARTS", elastic.max_restarts);
}

/// What `init_process_group("env://")` reads; each instance has one process, so its local rank is 0.
fn ddp(plan: &DistributedPlan, first: &MemberPlan, member: &MemberPlan, env: &mut Env) {
    let Some(rank) = member.first_rank else { return };
    master(first, env);
    put(env, "WORLD_SIZE", plan.world_size);
    env.insert("RANK".to_owned(), own_number(rank));
    put(env, "LOCAL_RANK", 0);
}

/// What `LightningEnvironment` reads (lightning 7f0c3436, `fabric/plugins/environments/lightning.py`). LOCAL_RANK is not
/// set: with it Lightning would start no processes. The Trainer itself takes `devices` and `num_nodes`.
fn lightning(first: &MemberPlan, member: &MemberPlan, env: &mut Env) {
    let Some(rank) = member.first_rank else { return };
    master(first, env);
    env.insert("NODE_RANK".to_owned(), own_number(rank));
}

/// What `composer` reads instead of flags (composer 64051888, `cli/launcher.py`): BASE_RANK follows from NODE_RANK.
fn composer(plan: &DistributedPlan, first: &MemberPlan, member: &MemberPlan, env: &mut Env) {
    let Some(rank) = member.first_rank else { return };
    master(first, env);
    put(env, "WORLD_SIZE", plan.world_size);
    put(env, "LOCAL_WORLD_SIZE", member.processes);
    env.insert("NODE_RANK".to_owned(), own_number(rank));
}

fn master(first: &MemberPlan, env: &mut Env) {
    env.insert("MASTER_ADDR".to_owned(), address(first));
    env.insert("MASTER_PORT".to_owned(), port(first));
}

/// Open MPI's MCA parameters, and the host files of MPICH and Intel MPI, which read only their own variables.
///
/// Open MPI 5 starts processes with PRRTE, which has its own parameters and ignores those of `orte`.
fn mpi(plan: &DistributedPlan, first: &MemberPlan, has_port: bool, env: &mut Env) {
    let mut put = |name: &str, value: &str| env.insert(name.to_owned(), Text::literal(value));
    put("OMPI_MCA_orte_default_hostfile", HOST_FILE);
    put("OMPI_MCA_orte_keep_fqdn_hostnames", "true");
    put("PRTE_MCA_prte_default_hostfile", HOST_FILE);
    put("PRTE_MCA_prte_keep_fqdn_hostnames", "true");
    if let Some(ssh) = &plan.ssh {
        // Only the image knows the name of a number; the settings of ssh have it.
        let user = if ssh.user.parse::<u32>().is_ok() { String::new() } else { format!("-l {} ", ssh.user) };
        let args =
            format!("-p {} {user}-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null", ssh.port);
        put("OMPI_MCA_plm_rsh_args", &args);
        if ssh.user == "root" {
            // mpirun refuses root without both.
            put("OMPI_ALLOW_RUN_AS_ROOT", "1");
            put("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
    }
    if plan.framework == Framework::Mpi {
        put("HYDRA_HOST_FILE", HYDRA_FILE);
        put("I_MPI_HYDRA_HOST_FILE", HYDRA_FILE);
    }
    // For programs that also use PyTorch's own rendezvous, if the user sets a port.
    if has_port {
        master(first, env);
    }
}

/// JAX's own names, with address and port in one, and those of Kubeflow's JAXJob, which separate them.
fn jax(plan: &DistributedPlan, first: &MemberPlan, member: &MemberPlan, env: &mut Env) {
    let Some(rank) = member.first_rank else { return };
    let mut both = address(first);
    both.push_str(":");
    both.push_text(&port(first));
    env.insert("JAX_COORDINATOR_ADDRESS".to_owned(), both);
    put(env, "JAX_NUM_PROCESSES", plan.world_size);
    env.insert("JAX_PROCESS_ID".to_owned(), own_number(rank));
    env.insert("COORDINATOR_ADDRESS".to_owned(), address(first));
    env.insert("COORDINATOR_PORT".to_owned(), port(first));
    put(env, "NUM_PROCESSES", plan.world_size);
    env.insert("PROCESS_ID".to_owned(), own_number(rank));
}

/// TensorFlow's cluster as JSON: the same for all but `task`. An evaluator is not part of the cluster.
fn tf_config(plan: &DistributedPlan, member: &MemberPlan, instances: &dyn Fn(&str) -> u32) -> Text {
    let mut text = Text::literal("{\"cluster\":{");
    let mut between = "";
    for part in [MemberPart::Chief, MemberPart::Worker, MemberPart::Ps] {
        let roles: Vec<&MemberPlan> = plan.members.iter().filter(|member| member.part == part).collect();
        if roles.is_empty() {
            continue;
        }
        text.push_str(&format!("{between}\"{}\":[", part_name(part)));
        for (number, role) in roles.iter().enumerate() {
            if number > 0 {
                text.push_str(",");
            }
            text.push_reference(Reference::Hosts {
                role: role.role.clone(),
                label: Some(RENDEZVOUS.to_owned()),
                before: "\"".to_owned(),
                after: "\"".to_owned(),
                separator: ",".to_owned(),
            });
        }
        text.push_str("]");
        between = ",";
    }
    text.push_str(&format!("}},\"task\":{{\"type\":\"{}\",\"index\":", part_name(member.part)));
    text.push_text(&own_number(before(plan, member, instances)));
    text.push_str("},\"environment\":\"cloud\"}");
    text
}

/// The number of instances before a member in the list of its part.
fn before(plan: &DistributedPlan, member: &MemberPlan, instances: &dyn Fn(&str) -> u32) -> u32 {
    plan.members
        .iter()
        .filter(|other| other.part == member.part)
        .take_while(|other| other.role != member.role)
        .map(|other| instances(&other.role))
        .sum()
}

/// The host files of a member. DeepSpeed's default path is used if one instance starts the others: with `launch: all`
/// the same command on every instance must not start peers.
pub(super) fn host_files(plan: &DistributedPlan, one_launches: bool) -> Vec<FilePlan> {
    let lines = |after: &str| {
        let mut text = Text::default();
        for member in plan.members.iter().filter(|member| member.first_rank.is_some()) {
            text.push_reference(Reference::Hosts {
                role: member.role.clone(),
                label: None,
                before: String::new(),
                after: after.replace('N', &member.processes.to_string()),
                separator: String::new(),
            });
        }
        text
    };
    let file = |path: &str, text: Text| FilePlan {
        path: path.to_owned(),
        content: FileContent::Text(text),
        mode: 0o644,
    };
    let slots = lines(" slots=N\n");
    let mut files = vec![file(HOST_FILE, slots.clone())];
    if plan.framework == Framework::Mpi {
        files.push(file(HYDRA_FILE, lines(":N\n")));
    }
    if plan.framework == Framework::Deepspeed && one_launches {
        files.push(file(DEEPSPEED_FILE, slots));
    }
    files
}

/// Whether the framework requires the host file.
pub(super) fn needs_host_file(plan: &DistributedPlan) -> bool {
    plan.ssh.is_some() || matches!(plan.framework, Framework::Mpi | Framework::Horovod | Framework::Deepspeed)
}

fn put(env: &mut Env, name: &str, number: u32) {
    env.insert(name.to_owned(), Text::literal(number.to_string()));
}

pub(super) fn address(first: &MemberPlan) -> Text {
    Text::reference(Reference::Host { role: first.role.clone(), index: Some(0) })
}

pub(super) fn port(first: &MemberPlan) -> Text {
    let (role, label) = (first.role.clone(), RENDEZVOUS.to_owned());
    Text::reference(Reference::Port { role, label, index: Some(0) })
}

/// The instance's index plus an offset; without one the plain index, which more targets support.
pub(super) fn own_number(offset: u32) -> Text {
    Text::reference(if offset == 0 { Reference::Index {} } else { Reference::Rank { offset } })
}
