//! The options of `sbatch`, and what becomes of each: for the reader, and for the table in the documentation.
//!
//! Names and arguments are those of `src/common/slurm_opt.c` of Slurm 24.05, and of the plug-in pyxis.

use super::super::options::Argument::{self, None, Optional, Required};
use super::super::options::Becomes::{Extra, Field, Note, Refusal, Target};
use super::super::options::{CommandOption, row};

const LOGS: &str = "jobc keeps the output of each task: `jobc logs` prints it";
const WAITS: &str = "`jobc submit` and `jobc run` have options of their own for this";
const SHELL: &str = "a setting of the command `sbatch`, not of the job";

/// The options, by name.
pub(in super::super) static OPTIONS: &[CommandOption] = &[
    row("account", 'A', Required, Target("account")),
    row("acctg-freq", ' ', Required, Extra),
    row("array", 'a', Required, Field("`matrix`, with `max_parallel` for `%N`")),
    row("batch", ' ', Required, Extra),
    row("bb", ' ', Required, Extra),
    row("bbf", ' ', Required, Extra),
    row("begin", 'b', Required, Extra),
    row("chdir", 'D', Required, Field("`workdir`")),
    row("cluster-constraint", ' ', Required, Extra),
    row("clusters", 'M', Required, Extra),
    row("comment", ' ', Required, Extra),
    row("constraint", 'C', Required, Target("constraint")),
    row(
        "container",
        ' ',
        Required,
        Refusal(
            "`--container` names an OCI bundle of the cluster",
            "write `image` in a job file; a target with `slurm: {container: oci}` runs it",
        ),
    ),
    row("container-env", ' ', Required, Note("variables of the job replace those of the image")),
    row("container-image", ' ', Required, Field("`image`")),
    row(
        "container-mount-home",
        ' ',
        None,
        Note("a job mounts the directories that `data` and `outputs` name"),
    ),
    row("container-mounts", ' ', Required, Field("`data`")),
    row("container-name", ' ', Required, Note("images are kept by their names")),
    row("container-remap-root", ' ', None, Note("the default")),
    row("container-workdir", ' ', Required, Field("`workdir`")),
    row("container-writable", ' ', None, Note("the default")),
    row("contiguous", ' ', None, Extra),
    row("core-spec", 'S', Required, Extra),
    row("cores-per-socket", ' ', Required, Extra),
    row("cpu-bind", ' ', Required, Extra),
    row("cpu-freq", ' ', Required, Extra),
    row("cpus-per-gpu", ' ', Required, Field("`resources.cpu`, times the GPUs of an instance")),
    row("cpus-per-task", 'c', Required, Field("`resources.cpu`, times the tasks of an instance")),
    row("deadline", ' ', Required, Extra),
    row("delay-boot", ' ', Required, Extra),
    row(
        "dependency",
        'd',
        Required,
        Field("nothing for `singleton`; other jobs are an error: write them as roles, with `needs`"),
    ),
    row("distribution", 'm', Required, Extra),
    row("error", 'e', Required, Note(LOGS)),
    row("exclude", 'x', Required, Extra),
    row("exclusive", ' ', Optional, Target("exclusive")),
    row("export", ' ', Required, Field("`env`, and `image.host.env` for variables that are passed on")),
    row(
        "export-file",
        ' ',
        Required,
        Refusal("the environment comes from a file", "write its variables as `env`"),
    ),
    row("extra", ' ', Required, Extra),
    row("extra-node-info", 'B', Required, Extra),
    row("get-user-env", ' ', Optional, Note(SHELL)),
    row("gid", ' ', Required, Note(SHELL)),
    row("gpu-bind", ' ', Required, Extra),
    row("gpu-freq", ' ', Required, Extra),
    row("gpus", 'G', Required, Field("`resources.gpu`, divided by the instances")),
    row("gpus-per-node", ' ', Required, Field("`resources.gpu`, divided by the tasks of a node")),
    row("gpus-per-socket", ' ', Required, Refusal("GPUs of a socket", "write `--gpus-per-node`")),
    row("gpus-per-task", ' ', Required, Field("`resources.gpu`, times the tasks of an instance")),
    row(
        "gres",
        ' ',
        Required,
        Field("`resources.gpu` for `gpu:MODEL:N`; others are licenses of the cluster: an error"),
    ),
    row("gres-flags", ' ', Required, Extra),
    row("hint", ' ', Required, Extra),
    row("hold", 'H', None, Note(WAITS)),
    row("ignore-pbs", ' ', None, Note(SHELL)),
    row("image", ' ', Required, Field("`image`, of the plug-in shifter")),
    row(
        "input",
        'i',
        Required,
        Note("tasks read nothing from stdin; write the file as an argument or `< FILE` in `run`"),
    ),
    row("job-name", 'J', Required, Field("`name`, in lower case with `-`")),
    row("kill-on-bad-exit", 'K', Optional, Note("the default: the first failure of a role ends the job")),
    row("kill-on-invalid-dep", ' ', Required, Note("a job has no dependencies on others")),
    row("licenses", 'L', Required, Target("licenses")),
    row("mail-type", ' ', Required, Extra),
    row("mail-user", ' ', Required, Extra),
    row("mcs-label", ' ', Required, Extra),
    row(
        "mem",
        ' ',
        Required,
        Field("`resources.memory`, divided by the tasks of a node; `0` is the whole node"),
    ),
    row("mem-bind", ' ', Required, Extra),
    row("mem-per-cpu", ' ', Required, Field("`resources.memory`, times the CPUs of an instance")),
    row("mem-per-gpu", ' ', Required, Field("`resources.memory`, times the GPUs of an instance")),
    row("mincpus", ' ', Required, Extra),
    row(
        "module",
        ' ',
        Required,
        Note("modules of the plug-in shifter: jobc gives a task its GPUs and its network"),
    ),
    row("network", ' ', Required, Extra),
    row("nice", ' ', Optional, Extra),
    row(
        "no-kill",
        'k',
        Optional,
        Note("the first failure of a role ends the job; `completion` changes this"),
    ),
    row("no-requeue", ' ', None, Note("the default")),
    row("nodefile", 'F', Required, Extra),
    row("nodelist", 'w', Required, Extra),
    row("nodes", 'N', Required, Field("`instances`, where `srun` starts one task on each node")),
    row("ntasks", 'n', Required, Field("`instances`, where `srun` starts them")),
    row("ntasks-per-core", ' ', Required, Extra),
    row(
        "ntasks-per-gpu",
        ' ',
        Required,
        Refusal(
            "tasks of one GPU",
            "write `--ntasks`; in a job file each instance has its own GPUs, or a share of one with `gpu: {count: 1, share: …}`",
        ),
    ),
    row(
        "ntasks-per-node",
        ' ',
        Required,
        Field("`instances`, where `srun` starts them; else the CPUs of one instance"),
    ),
    row("ntasks-per-socket", ' ', Required, Extra),
    row("oom-kill-step", ' ', Optional, Extra),
    row("open-mode", ' ', Required, Note(LOGS)),
    row("output", 'o', Required, Note(LOGS)),
    row("overcommit", 'O', None, Extra),
    row("oversubscribe", 's', None, Extra),
    row("parsable", ' ', None, Note(SHELL)),
    row("partition", 'p', Required, Target("partition")),
    row("power", ' ', Required, Extra),
    row("prefer", ' ', Required, Extra),
    row("priority", ' ', Required, Extra),
    row("profile", ' ', Required, Extra),
    row("propagate", ' ', Optional, Note("jobc sets its own limits: `resources.ulimits`")),
    row("qos", 'q', Required, Target("qos")),
    row("quiet", 'Q', None, Note(SHELL)),
    row("reboot", ' ', None, Extra),
    row("requeue", ' ', None, Note("`retry: {max: 1}` starts a job again after a failure")),
    row("reservation", ' ', Required, Target("reservation")),
    row("resv-ports", ' ', Optional, Extra),
    row("segment", ' ', Required, Extra),
    row(
        "signal",
        ' ',
        Required,
        Field("`stop_signal` and `grace_period`: outside Slurm it is sent at the time limit, not before it"),
    ),
    row("sockets-per-node", ' ', Required, Extra),
    row("spread-job", ' ', None, Extra),
    row("stepmgr", ' ', None, Extra),
    row("switches", ' ', Required, Target("switches")),
    row("test-only", ' ', None, Note(WAITS)),
    row("thread-spec", ' ', Required, Extra),
    row("threads-per-core", ' ', Required, Extra),
    row("time", 't', Required, Field("`timeout`")),
    row("time-min", ' ', Required, Extra),
    row("tmp", ' ', Required, Field("`resources.disk`")),
    row("tres-bind", ' ', Required, Extra),
    row(
        "tres-per-task",
        ' ',
        Required,
        Refusal("`--tres-per-task` is not read", "write `--cpus-per-task` and `--gpus-per-task`"),
    ),
    row("uid", ' ', Required, Note(SHELL)),
    row("use-min-nodes", ' ', None, Extra),
    row("verbose", 'v', None, Note(SHELL)),
    row("wait", 'W', None, Note(WAITS)),
    row("wait-all-nodes", ' ', Required, Extra),
    row("wckey", ' ', Required, Extra),
    row("wrap", ' ', Required, Refusal("`--wrap` in a script", "write the command below the options")),
];

/// Options that `srun` alone has, and whether each has an argument.
pub(super) static OF_SRUN: &[(&str, char, Argument)] = &[
    ("accel-bind", ' ', Required),
    ("bcast", ' ', Optional),
    ("compress", ' ', Optional),
    ("cpu-bind", ' ', Required),
    ("disable-status", 'X', None),
    ("epilog", ' ', Required),
    ("exact", ' ', None),
    ("external-launcher", ' ', None),
    ("het-group", ' ', Required),
    ("immediate", 'I', Optional),
    ("jobid", ' ', Required),
    ("kill-on-bad-exit", 'K', Optional),
    ("label", 'l', None),
    ("max-exit-timeout", ' ', Required),
    ("mpi", ' ', Required),
    ("msg-timeout", ' ', Required),
    ("multi-prog", ' ', None),
    ("no-allocate", 'Z', None),
    ("no-container-mount-home", ' ', None),
    ("no-container-remap-root", ' ', None),
    ("overlap", ' ', None),
    ("preserve-env", 'E', None),
    ("prolog", ' ', Required),
    ("pty", ' ', Optional),
    ("quit-on-interrupt", ' ', None),
    ("relative", 'r', Required),
    ("send-libs", ' ', Optional),
    ("slurmd-debug", ' ', Required),
    ("task-epilog", ' ', Required),
    ("task-prolog", ' ', Required),
    ("threads", 'T', Required),
    ("unbuffered", 'u', None),
    ("wait", 'W', Required),
    ("whole", ' ', None),
];

/// The option with a long name, or with a beginning of it that no other has; `tasks-per-node` is an old name.
pub(super) fn by_name(name: &str) -> Result<&'static CommandOption, Vec<&'static str>> {
    let name = match name {
        "tasks-per-node" => "ntasks-per-node",
        "share" => "oversubscribe",
        "workdir" => "chdir",
        "exclude-node" => "exclude",
        "no-container-mount-home" => "container-mount-home",
        "no-container-remap-root" => "container-remap-root",
        name => name,
    };
    if let Some(option) = OPTIONS.iter().find(|option| option.long == name) {
        return Ok(option);
    }
    let near: Vec<&CommandOption> = OPTIONS.iter().filter(|option| option.long.starts_with(name)).collect();
    match near[..] {
        [only] => Ok(only),
        _ => Err(near.iter().map(|option| option.long).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_a_name_if_no_other_has_it() {
        assert_eq!(by_name("cpus-per-t").unwrap().short, 'c');
        assert_eq!(by_name("container-m").unwrap_err(), ["container-mount-home", "container-mounts"]);
    }
}
