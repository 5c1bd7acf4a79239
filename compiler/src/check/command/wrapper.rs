//! Programs that start the program in their arguments: `timeout 1h torchrun …`, `uv run torchrun …`.

use super::program::base_name;

/// How to find the program behind a wrapper.
struct Wrapper {
    /// The program, and the subcommand that starts another; empty where there is none.
    program: &'static str,
    subcommand: &'static str,
    /// Options whose value is the next word.
    valued: &'static [&'static str],
    /// The number of words between the options and the program.
    positional: usize,
}

const fn wrapper(
    program: &'static str,
    subcommand: &'static str,
    valued: &'static [&'static str],
    positional: usize,
) -> Wrapper {
    Wrapper { program, subcommand, valued, positional }
}

const CONDA: &[&str] = &["-n", "--name", "-p", "--prefix", "--cwd"];
const NSYS: &[&str] = &[
    "-o",
    "--output",
    "-t",
    "--trace",
    "-s",
    "--sample",
    "-c",
    "--capture-range",
    "-d",
    "--duration",
    "-y",
    "--delay",
    "-f",
    "--force-overwrite",
    "-w",
    "--show-output",
    "-e",
    "--env-var",
    "-b",
    "--backtrace",
    "-x",
    "--stop-on-exit",
    "-k",
    "--kill",
    "-n",
    "--inherit-environment",
    "--export",
    "--stats",
    "--session-new",
];
const SRUN: &[&str] = &[
    "-n",
    "--ntasks",
    "-N",
    "--nodes",
    "-c",
    "--cpus-per-task",
    "-G",
    "--gpus",
    "-p",
    "--partition",
    "-A",
    "--account",
    "-t",
    "--time",
    "-J",
    "--job-name",
    "-w",
    "--nodelist",
    "-x",
    "--exclude",
    "-o",
    "--output",
    "-e",
    "--error",
    "-D",
    "--chdir",
    "-m",
    "--distribution",
    "--mem",
    "--gres",
    "--jobid",
    "--mpi",
    "--export",
];
const UV: &[&str] = &[
    "-p",
    "--python",
    "--with",
    "-w",
    "--with-editable",
    "--with-requirements",
    "--extra",
    "--group",
    "--no-group",
    "--only-group",
    "--package",
    "--project",
    "--directory",
    "--env-file",
    "--index",
    "--default-index",
    "--config-file",
    "--cache-dir",
];

/// The known wrappers.
const WRAPPERS: &[Wrapper] = &[
    wrapper("uv", "run", UV, 0),
    wrapper("uvx", "", &["--from", "--with", "-p", "--python"], 0),
    wrapper("poetry", "run", &["-C", "--directory", "-P", "--project"], 0),
    wrapper("pdm", "run", &["-p", "--project"], 0),
    wrapper("pipenv", "run", &[], 0),
    wrapper("hatch", "run", &["-e", "--env"], 0),
    wrapper("pixi", "run", &["-e", "--environment", "--manifest-path"], 0),
    wrapper("conda", "run", CONDA, 0),
    wrapper("mamba", "run", CONDA, 0),
    wrapper("micromamba", "run", CONDA, 0),
    wrapper(
        "numactl",
        "",
        &[
            "-i",
            "-N",
            "-m",
            "-C",
            "-p",
            "-w",
            "--interleave",
            "--cpunodebind",
            "--membind",
            "--physcpubind",
            "--preferred",
        ],
        0,
    ),
    wrapper("taskset", "", &[], 1),
    wrapper("timeout", "", &["-k", "--kill-after", "-s", "--signal"], 1),
    wrapper("nsys", "profile", NSYS, 0),
    wrapper("nsys", "launch", NSYS, 0),
    wrapper(
        "ncu",
        "",
        &["-o", "--export", "--set", "--section", "-k", "--kernel-name", "-c", "--launch-count", "--metrics"],
        0,
    ),
    wrapper("srun", "", SRUN, 0),
    wrapper("env", "", &["-u", "--unset", "-C", "--chdir", "-S", "--split-string"], 0),
    wrapper("nice", "", &["-n", "--adjustment"], 0),
    wrapper("ionice", "", &["-c", "--class", "-n", "--classdata"], 0),
    wrapper("stdbuf", "", &["-i", "-o", "-e", "--input", "--output", "--error"], 0),
    wrapper("chrt", "", &["-T", "-P", "-D"], 1),
    wrapper("setsid", "", &[], 0),
    wrapper("tini", "", &["-p", "-e"], 0),
    wrapper("dumb-init", "", &["-r", "--rewrite"], 0),
    wrapper("catchsegv", "", &[], 0),
    wrapper("xvfb-run", "", &["-n", "--server-num", "-s", "--server-args"], 0),
    wrapper("py-spy", "record", &["-o", "--output", "-r", "--rate", "-d", "--duration", "-f", "--format"], 0),
    wrapper("strace", "", &["-o", "-e", "-s", "-p"], 0),
    wrapper("ddtrace-run", "", &[], 0),
    wrapper("opentelemetry-instrument", "", &[], 0),
];

/// The words after a wrapper, or `None` if the first word is not a wrapper.
pub(super) fn behind(words: &[String]) -> Option<&[String]> {
    let program = base_name(words.first()?);
    let wrapper = WRAPPERS.iter().find(|known| {
        known.program == program
            && (known.subcommand.is_empty() || words.get(1).is_some_and(|word| word == known.subcommand))
    })?;
    let mut rest = &words[1 + usize::from(!wrapper.subcommand.is_empty())..];
    while let Some(first) = rest.first().filter(|word| word.starts_with('-')) {
        let skipped =
            if first == "--" { 1 } else { 1 + usize::from(wrapper.valued.contains(&first.as_str())) };
        let ended = first == "--";
        rest = rest.get(skipped..).unwrap_or_default();
        if ended {
            break;
        }
    }
    rest.get(wrapper.positional..).filter(|rest| !rest.is_empty())
}
