//! Kinds of Kubeflow: the Training Operator, the MPI Operator and Kubeflow Trainer.

use super::super::facts::Fact;
use super::super::rows::{Row, changed, fact, field, note, setting};
use super::kind::{Kind, Name, PodGroups, Stands};
use super::shared::{CONTROLLER, JOBSET_SPEC, KIND, OLD_POLICY, REPLICA, REPLICATED_JOBS, RUN_POLICY};

/// Kubeflow, and KubeDL with the same kinds.
const KUBEFLOW: &[&str] = &["kubeflow.org", "training.kubedl.io"];

/// The groups of a kind of Kubeflow.
const fn replicas(at: &'static str) -> PodGroups {
    PodGroups { at, name: Name::Key, template: "template", fields: &[("", REPLICA)], metadata: &[] }
}

pub(super) static PYTORCHJOB: Kind = Kind {
    name: "PyTorchJob",
    groups: KUBEFLOW,
    fields: &[("spec", PYTORCH_SPEC), ("spec", OLD_POLICY), ("spec.runPolicy", RUN_POLICY)],
    places: &[replicas("spec.pytorchReplicaSpecs.*")],
    parts: &[("Master", "master", "chief"), ("Worker", "worker", "worker")],
    framework: Stands::Pytorch,
    hosts: &["{job}-{group}-{i}"],
    becomes: "a JobSet: the Training Operator has no successor for this kind",
    ..KIND
};

const PYTORCH_SPEC: &[Row] = &[
    fact("elasticPolicy.maxReplicas", Fact::ElasticMax),
    fact("elasticPolicy.maxRestarts", Fact::ElasticRestarts),
    note("elasticPolicy.metrics", "jobc starts no further instances by load"),
    fact("elasticPolicy.minReplicas", Fact::ElasticMin),
    fact("elasticPolicy.nProcPerNode", Fact::Processes),
    fact("elasticPolicy.rdzvBackend", Fact::ElasticBackend),
    changed(
        "elasticPolicy.rdzvConf",
        "settings of the rendezvous are not made",
        "write them as `--rdzv-conf` of `torchrun` in the command",
    ),
    fact("elasticPolicy.rdzvHost", Fact::ElasticHost),
    note("elasticPolicy.rdzvId", "jobc sets the name of the rendezvous"),
    fact("elasticPolicy.rdzvPort", Fact::ElasticPort),
    note("elasticPolicy.standalone", "jobc sets the address of the rendezvous"),
    fact("nprocPerNode", Fact::Processes),
];

pub(super) static TFJOB: Kind = Kind {
    name: "TFJob",
    groups: KUBEFLOW,
    fields: &[
        (
            "spec",
            &[
                note("enableDynamicWorker", "`instances` of a job is fixed"),
                fact("successPolicy", Fact::WorkersSucceed),
            ],
        ),
        ("spec", OLD_POLICY),
        ("spec.runPolicy", RUN_POLICY),
    ],
    places: &[replicas("spec.tfReplicaSpecs.*")],
    parts: &[
        ("Chief", "chief", "chief"),
        ("Master", "chief", "chief"),
        ("Worker", "worker", "worker"),
        ("PS", "ps", "ps"),
        ("Evaluator", "evaluator", "evaluator"),
        ("Eval", "evaluator", "evaluator"),
    ],
    framework: Stands::Parts("tensorflow"),
    hosts: &["{job}-{group}-{i}"],
    becomes: "a JobSet: the Training Operator has no successor for this kind",
    ..KIND
};

pub(super) static MPIJOB: Kind = Kind {
    name: "MPIJob",
    groups: KUBEFLOW,
    fields: &[
        (
            "spec",
            &[
                note("launcherCreationPolicy", "jobc starts the launcher's command when the workers answer"),
                note("mainContainer", "a role has one container"),
                changed(
                    "mpiImplementation",
                    "the commands of the image decide which MPI runs",
                    "for MPICH and Intel MPI write `--hostfile \"$JOBC_HOSTFILE\"` in the command",
                ),
                fact("runLauncherAsWorker", Fact::LauncherWorks),
                fact("slotsPerWorker", Fact::Processes),
                note("sshAuthMountPath", "jobc sets up ssh between the instances"),
            ],
        ),
        ("spec", OLD_POLICY),
        ("spec.runPolicy", RUN_POLICY),
    ],
    places: &[replicas("spec.mpiReplicaSpecs.*")],
    parts: &[("Launcher", "launcher", "launcher"), ("Worker", "worker", "worker")],
    framework: Stands::Parts("mpi"),
    hosts: &["{job}-{group}-{i}"],
    builds: Some("mpijob"),
    ..KIND
};

pub(super) static TRAINJOB: Kind = Kind {
    name: "TrainJob",
    groups: &["trainer.kubeflow.org"],
    fields: &[
        (
            "spec",
            &[
                fact("activeDeadlineSeconds", Fact::JobTimeout),
                setting("annotations", "kubernetes.annotations"),
                field("initializer", "`env` of the roles of the runtime that fetch the model and the data"),
                setting("labels", "kubernetes.labels"),
                note("managedBy", CONTROLLER),
                field("podSpecOverrides", "what they change of the pods"),
                field("podTemplateOverrides", "what they change of the pods"),
                note("mlPolicy.numNodes", "`numNodes` of the TrainJob"),
                fact("mlPolicy.torch.numProcPerNode", Fact::Processes),
                changed(
                    "mlPolicy.mpi",
                    "the launcher of MPI gets no host file and no ssh",
                    "write `distributed: {framework: mpi, roles: {launcher: launcher, node: worker}}`",
                ),
                note("mlPolicy.flux", "the command starts its processes itself"),
                note("mlPolicy.jax", "the command starts its processes itself"),
                note("mlPolicy.plainML", "the command starts its processes itself"),
                fact("numProcPerNode", Fact::Processes),
                note("podGroupPolicy", "`gang` of a job file, and the queue of a target"),
                field("runtimePatches", "what they change of the pods"),
                fact("runtimeRef", Fact::Runtime),
                fact("suspend", Fact::Suspend),
            ],
        ),
        ("spec", JOBSET_SPEC),
    ],
    places: &[REPLICATED_JOBS],
    framework: Stands::Pytorch,
    hosts: &["{job}-{group}-{0}-{i}"],
    builds: Some("trainjob"),
    ..KIND
};
