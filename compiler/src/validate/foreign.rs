//! Keys of other tools: Compose, Kubernetes, OpenPAI, SkyPilot, Slurm, GitHub Actions.
//!
//! A row has the maps in which a spelling occurs and what to write. Spellings are compared in lower case and without
//! `_`, `-` and `.`.

use crate::suggest;

/// What to write for another tool's key.
pub(super) struct Advice {
    /// The maps in which it occurs, as paths.
    places: &'static [&'static str],
    /// The spellings.
    spellings: &'static [&'static str],
    /// The path of our key; `None` if there is none.
    pub(super) write: Option<&'static str>,
    /// What else must change; empty if nothing.
    pub(super) note: &'static str,
}

impl Advice {
    /// Whether its spellings occur in the map at a place.
    fn is_for(&self, place: &[String]) -> bool {
        self.places.iter().any(|path| {
            let steps = path.split('.').filter(|step| !step.is_empty());
            steps.clone().count() == place.len() && steps.zip(place).all(|(step, s)| step == "*" || step == s)
        })
    }
}

const JOB: &str = "";
const ROLE: &str = "roles.*";
const RESOURCES: &str = "roles.*.resources";
const GPU: &str = "roles.*.resources.gpu";
const TARGET: &str = "targets.*";
const SLURM: &[&str] = &[TARGET, "targets.*.slurm"];
const ANYWHERE: &[&str] = &[JOB, ROLE, RESOURCES];

const fn same(
    places: &'static [&'static str],
    spellings: &'static [&'static str],
    write: &'static str,
) -> Advice {
    Advice { places, spellings, write: Some(write), note: "" }
}

const fn with(
    places: &'static [&'static str],
    spellings: &'static [&'static str],
    write: &'static str,
    note: &'static str,
) -> Advice {
    Advice { places, spellings, write: Some(write), note }
}

const fn none(
    places: &'static [&'static str],
    spellings: &'static [&'static str],
    note: &'static str,
) -> Advice {
    Advice { places, spellings, write: None, note }
}

const TARGETS_NOTE: &str =
    "this is a setting of a target: write it in `targets.yaml`, under `targets.<name>.kubernetes`";

const TIMEOUTS: &[&str] = &[
    "activedeadlineseconds",
    "timelimit",
    "timeoutminutes",
    "timeoutseconds",
    "walltime",
    "maxduration",
    "maxruntime",
    "deadline",
    "time",
];

static TABLE: &[Advice] = &[
    // ---- commands
    same(&[JOB, ROLE], &["command", "cmd", "commands", "script", "exec", "entrypoint"], "roles.*.run"),
    same(
        ANYWHERE,
        &[
            "replicas",
            "numworkers",
            "numnodes",
            "nodes",
            "nnodes",
            "tasknumber",
            "numtasks",
            "ntasks",
            "scale",
            "workers",
            "numinstances",
            "numreplicas",
            "parallelism",
            "completions",
        ],
        "roles.*.instances",
    ),
    same(&[JOB, ROLE], &["workingdir", "workdirectory", "workingdirectory", "cwd"], "roles.*.workdir"),
    same(&[ROLE], &["environment", "envs", "envvars", "variables", "vars"], "roles.*.env"),
    same(&[ROLE], &["beforescript", "presetup", "install", "prerun", "initscript"], "roles.*.setup"),
    same(&[JOB], &["environment", "envs", "envvars"], "env"),
    with(
        &[JOB],
        &["services", "taskroles", "tasks", "containers", "pods", "jobs", "task"],
        "roles",
        "a map of what runs, by name: `roles: {train: {run: python train.py}}`",
    ),
    with(
        &[ROLE],
        &["dependson"],
        "roles.*.needs",
        "a list in `depends_on` of Compose waits until the others have started, and `needs: [NAME]` until they have succeeded",
    ),
    same(&[ROLE], &["depends", "dependencies", "requires", "after", "waitfor"], "roles.*.needs"),
    with(
        &[JOB, ROLE],
        &["healthcheck", "readinessprobe", "startupprobe", "livenessprobe"],
        "roles.*.ready",
        "a readiness check: `ready: {port: http}`, or `http`, `exec`, `log`",
    ),
    same(&[JOB], &["parameters", "inputs", "vars", "variables", "hyperparameters"], "params"),
    same(&[JOB], &["jobname", "title"], "name"),
    with(
        &[JOB],
        &["strategy", "sweep", "axes"],
        "matrix",
        "`matrix` holds the axes themselves: `lr: [0.1, 0.01]`",
    ),
    none(
        &[JOB, ROLE],
        &["seed", "seeds"],
        "`matrix: {seed: [1, 2, 3]}` makes a job of each, with `${{ matrix.seed }}`",
    ),
    none(
        &[JOB, ROLE],
        &["extends", "include", "runson"],
        "include a template with `uses`; select a target with `jobc build --target`",
    ),
    none(
        &[JOB],
        &["apiversion", "kind", "metadata", "spec"],
        "this is a key of Kubernetes manifests, which jobc writes; `jobc init` writes a first job file",
    ),
    none(
        &[ROLE],
        &["deploy"],
        "write `cpu`, `memory` and `gpu` under `resources`, and `replicas` as `instances`",
    ),
    // ---- images
    same(&[JOB], &["dockerimage", "containerimage", "container", "baseimage"], "image"),
    same(&[ROLE], &["dockerimage", "containerimage", "container", "baseimage"], "roles.*.image"),
    with(
        &[ROLE],
        &["build"],
        "roles.*.image",
        "a Dockerfile of yours is `image: {dockerfile: Dockerfile, context: .}`",
    ),
    same(&["image"], &["base", "baseimage", "image", "name", "uri", "tag", "reference"], "image.from"),
    same(&["images.*"], &["base", "baseimage", "image", "name", "uri", "tag", "reference"], "images.*.from"),
    same(&["roles.*.image"], &["base", "baseimage", "image", "name", "uri", "tag"], "roles.*.image.from"),
    same(&["image"], &["file", "dockerfilepath"], "image.dockerfile"),
    same(&["image"], &["aptpackages", "systempackages", "aptget"], "image.apt"),
    same(&["image"], &["pip", "pippackages", "pythonpackages"], "image.python.packages"),
    same(&["image"], &["requirements", "requirementstxt"], "image.python.requirements"),
    none(
        &["image"],
        &["packages"],
        "Debian packages go under `apt`, Python packages under `python.packages`, Conda packages under `conda.packages`",
    ),
    same(&["image"], &["cmd", "commands", "script"], "image.run"),
    same(&["image"], &["buildargs", "arg"], "image.args"),
    same(&["image"], &["pythonversion"], "image.python.version"),
    // ---- hosts
    with(
        ANYWHERE,
        &["shmmb", "shmsize", "sharedmemory", "ipc", "dshm"],
        "roles.*.resources.shm",
        "with a unit, such as `8GiB`",
    ),
    with(
        ANYWHERE,
        &["memorymb", "mem", "memlimit", "memorylimit", "ram", "memorygb", "mempernode"],
        "roles.*.resources.memory",
        "with a unit, such as `32GiB`",
    ),
    same(
        ANYWHERE,
        &[
            "cpunumber",
            "cpus",
            "cpulimit",
            "ncpus",
            "numcpus",
            "vcpus",
            "vcpu",
            "cores",
            "cpuspertask",
            "cpucount",
        ],
        "roles.*.resources.cpu",
    ),
    same(
        ANYWHERE,
        &[
            "gpunumber",
            "gpus",
            "numgpus",
            "ngpus",
            "nvidiacom/gpu",
            "accelerators",
            "gpucount",
            "gpuspernode",
        ],
        "roles.*.resources.gpu",
    ),
    same(ANYWHERE, &["gputype", "accelerator", "gpumodel"], "roles.*.resources.gpu.model"),
    same(ANYWHERE, &["gpumemory", "vram", "gpumem"], "roles.*.resources.gpu.memory"),
    same(&[RESOURCES], &["portlist", "expose", "port"], "roles.*.resources.ports"),
    with(
        &[JOB, ROLE],
        &["ports", "portlist", "expose", "port"],
        "roles.*.resources.ports",
        "a map of labels: `ports: {http: 8888}`",
    ),
    with(
        ANYWHERE,
        &["disksize", "ephemeralstorage", "diskgb"],
        "roles.*.resources.disk",
        "with a unit, such as `100GiB`",
    ),
    same(ANYWHERE, &["infiniband", "ib"], "roles.*.resources.rdma"),
    same(ANYWHERE, &["pidslimit"], "roles.*.resources.pids"),
    same(ANYWHERE, &["ulimit", "rlimits"], "roles.*.resources.ulimits"),
    none(
        &[RESOURCES],
        &["limits", "requests", "reservations"],
        "the request is also the limit: write `cpu`, `memory` and `gpu` directly under `resources`",
    ),
    same(&[GPU], &["number", "num", "n", "amount", "gpus", "gpunumber"], "roles.*.resources.gpu.count"),
    same(&[GPU], &["type", "name", "product", "kind", "sku", "gputype"], "roles.*.resources.gpu.model"),
    with(
        &[GPU],
        &["mem", "vram", "memorygb", "memorymb"],
        "roles.*.resources.gpu.memory",
        "with a unit, such as `40GiB`",
    ),
    same(&[GPU], &["cudaversion", "mincuda"], "roles.*.resources.gpu.cuda"),
    same(&[GPU], &["driverversion", "mindriver"], "roles.*.resources.gpu.driver"),
    same(&[GPU], &["mig", "migprofile"], "roles.*.resources.gpu.share.profile"),
    same(
        &[GPU, "roles.*.resources.gpu.share"],
        &["percent", "gpucores", "sm"],
        "roles.*.resources.gpu.share.cores",
    ),
    same(
        &["roles.*.resources.ports.*"],
        &["containerport", "number", "targetport"],
        "roles.*.resources.ports.*.port",
    ),
    // ---- files
    with(
        &[JOB],
        &["volumes", "mounts", "filemounts", "storage", "datasets", "datadir"],
        "data",
        "input goes under `data`, output under `outputs`: `imagenet: {source: /data/imagenet, mount: /data}`",
    ),
    with(
        &[JOB],
        &["outputdir", "results", "artifacts"],
        "outputs",
        "`checkpoints: {source: ./checkpoints, mount: /output}`",
    ),
    with(
        &[ROLE],
        &["volumes", "volumemounts", "mounts", "filemounts", "storage"],
        "roles.*.data",
        "declare input and output once for the job, under `data` and `outputs`; a role mounts all entries by default",
    ),
    none(&["data.*"], &["roles"], "`data: [NAME]` of a role mounts these entries alone"),
    none(&["outputs.*"], &["roles"], "`outputs: [NAME]` of a role mounts these entries alone"),
    same(&["data.*"], &["path", "src", "uri", "url", "hostpath", "location", "from"], "data.*.source"),
    same(&["data.*"], &["target", "dst", "destination", "mountpath", "to", "containerpath"], "data.*.mount"),
    same(&["outputs.*"], &["path", "src", "uri", "url", "hostpath", "location", "from"], "outputs.*.source"),
    same(
        &["outputs.*"],
        &["target", "dst", "destination", "mountpath", "to", "containerpath"],
        "outputs.*.mount",
    ),
    none(
        &["data.*"],
        &["readonly", "ro"],
        "data is read-only by default; to change this write `writable: true`",
    ),
    same(&["data.*"], &["rw", "readwrite"], "data.*.writable"),
    same(&["data.*"], &["extract", "unarchive", "untar", "unzip", "decompress"], "data.*.unpack"),
    with(&["data.*"], &["auth", "credentials", "token"], "data.*.secret", "the name of a secret of the job"),
    same(&["secrets.*"], &["fromenv", "envvar", "environment", "variable"], "secrets.*.env"),
    same(&["secrets.*"], &["path", "fromfile"], "secrets.*.file"),
    same(&["data.*"], &["revision", "branch", "commit", "tag"], "data.*.ref"),
    // ---- exit codes and failures
    with(
        &[JOB],
        &[
            "restart",
            "restartpolicy",
            "backofflimit",
            "maxretries",
            "retries",
            "retrycount",
            "jobretrycount",
            "maxrestarts",
        ],
        "retry",
        "the number of retries: `retry: {max: 3}`",
    ),
    with(
        &[ROLE],
        &[
            "restart",
            "restartpolicy",
            "backofflimit",
            "maxretries",
            "retries",
            "retrycount",
            "taskretrycount",
            "maxrestarts",
        ],
        "roles.*.retry",
        "the number of retries: `retry: {max: 3}`",
    ),
    with(&[ROLE], &["delay", "retrydelay"], "roles.*.retry.backoff", "with a unit, such as `30s`"),
    same(&["retry"], &["attempts", "limit", "count", "times", "maxattempts", "n"], "retry.max"),
    same(
        &["roles.*.retry"],
        &["attempts", "limit", "count", "times", "maxattempts", "n"],
        "roles.*.retry.max",
    ),
    same(&["retry"], &["delay", "wait", "interval"], "retry.backoff"),
    same(&["roles.*.retry"], &["delay", "wait", "interval"], "roles.*.retry.backoff"),
    with(&[JOB], TIMEOUTS, "timeout", "with a unit, such as `12h`"),
    with(&[ROLE], TIMEOUTS, "roles.*.timeout", "with a unit, such as `12h`"),
    with(
        &[JOB],
        &["terminationgraceperiodseconds", "stopgraceperiod", "killtimeout"],
        "grace_period",
        "with a unit, such as `30s`",
    ),
    with(
        &[ROLE],
        &["terminationgraceperiodseconds", "stopgraceperiod", "killtimeout"],
        "roles.*.grace_period",
        "with a unit, such as `30s`",
    ),
    same(&[ROLE], &["stopsignal", "killsignal"], "roles.*.stop_signal"),
    same(
        &[ROLE, "roles.*.completion"],
        &["minfailedinstances", "minfailedtaskcount"],
        "roles.*.completion.min_failed",
    ),
    same(
        &[ROLE, "roles.*.completion"],
        &["minsucceededinstances", "minsucceededtaskcount"],
        "roles.*.completion.min_succeeded",
    ),
    same(&["roles.*.ready"], &["tcp", "tcpsocket"], "roles.*.ready.port"),
    same(&["roles.*.ready"], &["httpget", "url"], "roles.*.ready.http"),
    with(
        &["roles.*.ready"],
        &["command", "test", "run"],
        "roles.*.ready.exec",
        "a list of arguments: `exec: [test, -e, /tmp/ready]`",
    ),
    with(
        &["roles.*.ready"],
        &["initialdelayseconds", "startperiod"],
        "roles.*.ready.delay",
        "with a unit, such as `5s`",
    ),
    with(
        &["roles.*.ready"],
        &["periodseconds", "interval"],
        "roles.*.ready.every",
        "with a unit, such as `5s`",
    ),
    with(&["roles.*.ready"], &["timeoutseconds"], "roles.*.ready.try_timeout", "with a unit, such as `5s`"),
    // ---- users and placement
    same(&[ROLE], &["runasuser", "uid"], "roles.*.user"),
    with(
        &[ROLE],
        &["securitycontext"],
        "roles.*.security",
        "its keys are `read_only_root`, `capabilities` and `privileged`; the user is `user`",
    ),
    same(&[ROLE, "roles.*.security"], &["capadd"], "roles.*.security.capabilities.add"),
    same(&[ROLE, "roles.*.security"], &["capdrop"], "roles.*.security.capabilities.drop"),
    same(&["roles.*.security"], &["readonlyrootfilesystem", "readonly"], "roles.*.security.read_only_root"),
    none(
        &[JOB, ROLE],
        &[
            "nodeselector",
            "tolerations",
            "affinity",
            "priorityclassname",
            "priorityclass",
            "serviceaccountname",
            "serviceaccount",
            "runtimeclassname",
            "imagepullsecrets",
            "namespace",
            "queue",
            "annotations",
        ],
        TARGETS_NOTE,
    ),
    none(
        ANYWHERE,
        &["partition", "account", "qos", "constraint", "reservation"],
        "this is a setting of a target: write it in `targets.yaml`, under `targets.<name>.slurm`",
    ),
    none(SLURM, TIMEOUTS, "the job sets its time: write `timeout` in the job file, such as `timeout: 12h`"),
    none(
        SLURM,
        &["gres", "gpuspernode", "gpuspertask"],
        "the job requests GPUs: write `resources: {gpu: 8}` in a role of the job file",
    ),
    none(SLURM, &["nodes", "ntasks"], "the job requests nodes: write `instances` in a role of the job file"),
    none(
        &[JOB],
        &["virtualcluster", "extras", "protocolversion", "prerequisites", "deployments"],
        "this is a setting of OpenPAI: write it in `targets.yaml`, under `targets.<name>.openpai`",
    ),
    none(
        &["secrets.*"],
        &["value", "literal"],
        "a job file never contains the value of a secret; write where it comes from: `env: NAME`, `file: PATH` or `store: {name, key}`",
    ),
    // ---- distributed training
    same(&["distributed"], &["backend", "type", "strategy", "kind"], "distributed.framework"),
    same(
        &["distributed"],
        &["nprocpernode", "procspernode", "processespernode", "slots", "slotsperworker"],
        "distributed.processes_per_instance",
    ),
    same(&["distributed"], &["masterport", "rdzvport"], "distributed.port"),
    same(&[JOB], &["nprocpernode"], "distributed.processes_per_instance"),
];

/// What to write for a key at a place, if it is another tool's key.
pub(super) fn find(place: &[String], key: &str) -> Option<&'static Advice> {
    let folded: String =
        key.chars().filter(|c| !matches!(c, '_' | '-' | '.')).flat_map(char::to_lowercase).collect();
    TABLE.iter().find(|advice| advice.spellings.contains(&folded.as_str()) && advice.is_for(place))
}

/// What to write for a misspelling of another tool's key: `enviroment`.
pub(super) fn near(place: &[String], key: &str) -> Option<&'static Advice> {
    let known = TABLE.iter().filter(|advice| advice.write.is_some() && advice.is_for(place));
    let spellings: Vec<&str> = known.flat_map(|advice| advice.spellings.iter().copied()).collect();
    find(place, suggest::nearest(key, spellings)?)
}

#[cfg(test)]
mod tests {
    use super::super::schema::{JOB as SCHEMA, TARGETS};
    use super::*;

    fn steps(path: &str) -> Vec<String> {
        path.split('.').filter(|step| !step.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn every_row_has_known_places_and_keys() {
        for advice in TABLE {
            for place in advice.places {
                let schema = if place.starts_with(TARGET) { &TARGETS } else { &SCHEMA };
                let keys = schema.keys(&steps(place));
                assert!(!keys.is_empty(), "{place}");
                for spelling in advice.spellings {
                    assert!(!keys.iter().any(|key| key == spelling), "{spelling} is our own at `{place}`");
                    assert!(!spelling.contains(['_', '-', '.']) && spelling.to_lowercase() == **spelling);
                }
            }
            if let Some(target) = advice.write {
                let mut path = steps(target);
                let key = path.pop().unwrap();
                assert!(SCHEMA.keys(&path).contains(&key), "{target}");
            }
        }
    }

    #[test]
    fn no_spelling_is_listed_twice_for_a_place() {
        let mut seen = std::collections::BTreeSet::new();
        for advice in TABLE {
            for place in advice.places {
                for spelling in advice.spellings {
                    assert!(seen.insert((place, spelling)), "{spelling} at `{place}`");
                }
            }
        }
    }
}
