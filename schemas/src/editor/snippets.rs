//! Whole blocks that an editor offers where they fit: `defaultSnippets`.
//!
//! A body is JSON and becomes YAML or JSON with the indentation of its place. `${1:text}` is a place to stop at with
//! the text that is there first; a string that begins with `^` is inserted without quotes, as a number is. Every body
//! with its first texts must compile: a test puts each into a job.

use schemars::Schema;
use serde_json::{Value, json};

/// One block.
struct Snippet {
    /// The place in the schema, as a JSON Pointer.
    at: &'static str,
    /// The title in the editor's list.
    label: &'static str,
    /// The description in the editor's list.
    about: &'static str,
    /// The inserted text.
    body: Value,
}

/// Puts every block in its place; those of another schema are left out.
///
/// # Panics
/// If a block belongs to this schema by its title and its place is not there.
pub(super) fn insert(schema: &mut Schema) {
    let all = match schema.get("title").and_then(Value::as_str) {
        Some("jobc job") => job(),
        Some("jobc targets") => targets(),
        _ => return,
    };
    let mut root = std::mem::take(schema).to_value();
    for snippet in all {
        let Snippet { at, label, about, body } = snippet;
        let place = root.pointer_mut(at).and_then(Value::as_object_mut);
        let place = place.unwrap_or_else(|| panic!("the snippet `{label}` has no place `{at}`"));
        let list = place.entry("defaultSnippets").or_insert_with(|| json!([]));
        let list = list.as_array_mut().expect("nothing else makes a `defaultSnippets`");
        list.push(json!({"label": label, "description": about, "body": body}));
    }
    *schema = root.try_into().expect("it was a schema before");
}

fn snippet(at: &'static str, label: &'static str, about: &'static str, body: Value) -> Snippet {
    Snippet { at, label, about, body }
}

fn job() -> Vec<Snippet> {
    vec![
        snippet(
            "",
            "a new job",
            "A job with one role.",
            json!({
                "version": "^1",
                "name": "${1:my-job}",
                "image": "${2:python:3.12-slim}",
                "roles": {"${3:main}": {"resources": {"cpu": "^${4:1}", "memory": "${5:1GiB}"}, "run": "${6:echo hello}"}}
            }),
        ),
        snippet(
            "",
            "a new training job with GPUs",
            "A job with data, an output and one role that trains on GPUs.",
            json!({
                "version": "^1",
                "name": "${1:training}",
                "image": "${2:pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime}",
                "data": {"${3:dataset}": {"source": "${4:/data/dataset}", "mount": "/data"}},
                "outputs": {"checkpoints": {"source": "./checkpoints", "mount": "/output"}},
                "roles": {"train": {
                    "resources": {"cpu": "^${5:8}", "memory": "${6:32GiB}", "shm": "${7:8GiB}", "gpu": "^${8:1}"},
                    "run": "${9:python train.py --data /data --output /output}"
                }}
            }),
        ),
        snippet(
            "/properties/params",
            "a parameter",
            "A value that `--set` overrides.",
            json!({"${1:batch_size}": {"default": "^${2:256}", "description": "${3:images a step}"}}),
        ),
        snippet(
            "/properties/secrets",
            "a secret from the environment",
            "A secret from an environment variable of the user who starts the job.",
            json!({"${1:wandb}": {"env": "${2:WANDB_API_KEY}"}}),
        ),
        snippet(
            "/properties/secrets",
            "a secret from a store",
            "A secret from the secret store of the target, such as a Kubernetes Secret.",
            json!({"${1:wandb}": {"store": {"name": "${2:team-secrets}", "key": "${3:wandb}"}}}),
        ),
        snippet(
            "/$defs/Image",
            "build on an image",
            "A base image with added packages and files.",
            json!({
                "from": "${1:pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime}",
                "python": {"packages": ["${2:numpy==1.26.4}"]},
                "copy": [{"from": "${3:.}", "to": "/workspace"}],
                "workdir": "/workspace"
            }),
        ),
        snippet(
            "/$defs/Image",
            "a Dockerfile of your own",
            "An image built from your own Dockerfile.",
            json!({"dockerfile": "${1:Dockerfile}", "context": "${2:.}"}),
        ),
        snippet(
            "/$defs/Image",
            "this host and environment",
            "The host's files, the current directory, the active virtual environment, and variables by name.",
            json!({"host": {"cwd": true, "venv": true, "env": ["${1:WANDB_API_KEY}"]}}),
        ),
        snippet(
            "/properties/data",
            "data",
            "Input data of the roles.",
            json!({"${1:dataset}": {"source": "${2:/data/dataset}", "mount": "${3:/data}"}}),
        ),
        snippet(
            "/properties/outputs",
            "an output",
            "Output of the roles.",
            json!({"${1:checkpoints}": {"source": "${2:./checkpoints}", "mount": "${3:/output}"}}),
        ),
        snippet(
            "/properties/roles",
            "a role",
            "A role with a command and resources.",
            json!({"${1:main}": {"resources": {"cpu": "^${2:4}", "memory": "${3:8GiB}"}, "run": "${4:python main.py}"}}),
        ),
        snippet(
            "/properties/roles",
            "a role with GPUs",
            "Training on whole GPUs.",
            json!({"${1:train}": {
                "instances": "^${2:1}",
                "resources": {"cpu": "^${3:8}", "memory": "${4:32GiB}", "shm": "${5:8GiB}", "gpu": "^${6:1}"},
                "run": "${7:python train.py}"
            }}),
        ),
        snippet(
            "/properties/roles",
            "a role that serves",
            "A server with a port and a readiness check.",
            json!({"${1:server}": {
                "resources": {"cpu": "^${2:2}", "memory": "${3:4GiB}", "ports": {"http": "^${4:8080}"}},
                "run": "${5:python serve.py}",
                "ready": {"port": "http"}
            }}),
        ),
        snippet(
            "/properties/distributed",
            "distributed training",
            "Rendezvous of a distributed framework.",
            json!({"framework": "${1|torchrun,ddp,deepspeed,horovod,mpi,jax|}", "roles": ["${2:train}"]}),
        ),
        snippet(
            "/properties/distributed",
            "parameter servers",
            "TensorFlow's workers and parameter servers.",
            json!({"framework": "tensorflow", "roles": {"${1:train}": "worker", "${2:server}": "ps"}}),
        ),
        snippet(
            "/properties/matrix",
            "a sweep",
            "One job for each combination of values.",
            json!({"${1:lr}": ["^${2:0.1}", "^${3:0.01}"]}),
        ),
        snippet(
            "/$defs/Resources",
            "resources of a training role",
            "CPUs, memory, shared memory for data loaders, and GPUs.",
            json!({"cpu": "^${1:8}", "memory": "${2:32GiB}", "shm": "${3:8GiB}", "gpu": "^${4:1}"}),
        ),
        snippet(
            "/$defs/Gpu",
            "GPUs of a kind",
            "Whole GPUs of a model.",
            json!({"count": "^${1:1}", "model": "${2:A100-80GB}"}),
        ),
        snippet(
            "/$defs/Gpu",
            "a slice: MIG profile",
            "A slice of a GPU, isolated by hardware.",
            json!({"count": "^${1:1}", "model": "${2:A100-80GB}", "share": {"profile": "${3:1g.10gb}", "isolation": "hard"}}),
        ),
        snippet(
            "/$defs/Gpu",
            "a slice: memory and cores",
            "A slice of a GPU, isolated by a driver or a library.",
            json!({"count": "^${1:1}", "share": {"memory": "${2:8GiB}", "cores": "^${3:30}"}}),
        ),
        snippet(
            "/$defs/Ready",
            "a page that answers",
            "Ready when an HTTP request returns a status below 400.",
            json!({"http": {"port": "${1:http}", "path": "${2:/healthz}"}, "timeout": "${3:5m}"}),
        ),
        snippet(
            "/$defs/Ready",
            "a line of the log",
            "Ready when a line of the log matches.",
            json!({"log": "${1:listening on port}"}),
        ),
        snippet(
            "/$defs/Role/properties/files",
            "a small file",
            "A file with this text in each instance.",
            json!({"${1:/etc/app.conf}": {"content": "${2:debug = false}"}}),
        ),
        snippet(
            "/$defs/Role/properties/completion",
            "the first success ends the job",
            "One successful instance ends the job.",
            json!({"min_succeeded": "^${1:1}"}),
        ),
        snippet(
            "/$defs/Retry",
            "try again",
            "Retry after a failure, with a delay.",
            json!({"max": "^${1:2}", "backoff": "${2:10s}"}),
        ),
    ]
}

fn targets() -> Vec<Snippet> {
    vec![
        snippet(
            "",
            "a new targets file",
            "This host and a Kubernetes cluster.",
            json!({
                "version": "^1",
                "default": ["local"],
                "targets": {
                    "local": {"backends": ["dockerfile", "oci", "cgroup"]},
                    "${1:lab}": {"backends": ["dockerfile", "kubernetes"], "kubernetes": {"namespace": "${2:ml}"}}
                }
            }),
        ),
        snippet(
            "/properties/targets",
            "this host",
            "OCI bundles and cgroups.",
            json!({"${1:local}": {"backends": ["dockerfile", "oci", "cgroup"]}}),
        ),
        snippet(
            "/properties/targets",
            "a Kubernetes cluster",
            "Manifests, with a registry to push built images to.",
            json!({"${1:lab}": {
                "backends": ["dockerfile", "kubernetes"],
                "registry": "${2:registry.example.com/ml}",
                "kubernetes": {"namespace": "${3:ml}", "queue": {"kueue": "${4:user-queue}"}}
            }}),
        ),
        snippet(
            "/properties/targets",
            "an OpenPAI cluster",
            "A protocol v2 job.",
            json!({"${1:pai}": {"backends": ["openpai"], "openpai": {"virtual_cluster": "${2:default}"}}}),
        ),
        snippet(
            "/$defs/KubernetesTarget/properties/storage",
            "a claim for data or an output",
            "Volume for an entry of `data` or `outputs`, by name.",
            json!({"${1:imagenet}": {"pvc": "${2:imagenet-ro}"}}),
        ),
        snippet(
            "/$defs/KubernetesGpu",
            "who serves GPUs",
            "The device plugin and the GPU models of the cluster.",
            json!({"provider": "${1:nvidia-mig-mixed}", "models": ["${2:A100-80GB}"]}),
        ),
    ]
}
