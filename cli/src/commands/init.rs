//! `jobc init`: writes a starter job from an example.

use std::fs;

use camino::Utf8Path;
use jobc_compiler::suggest;

use super::schema::modeline;
use crate::args::{InitArgs, SchemaArg};
use crate::input::reason;
use crate::outcome::Outcome;
use crate::terminal;

/// An example: its name, a short description, its files.
type Example = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

macro_rules! example {
    ($name:literal, $about:literal, $($file:literal),+) => {
        ($name, $about, &[$(($file, include_str!(concat!("../../../examples/", $name, "/", $file)))),+])
    };
}

const EXAMPLES: &[Example] = &[
    example!("hello-cpu", "two instances that print hello, no GPU", "job.yaml"),
    example!(
        "local-dag",
        "prepare, train twice, compare; runs on this host without an image",
        "job.yaml",
        "code/prepare.py",
        "code/train.py",
        "code/compare.py"
    ),
    example!(
        "local-handoff",
        "files from one role to the next, served by its port; runs on this host without an image",
        "job.yaml",
        "code/prepare.py",
        "code/train.py"
    ),
    example!(
        "local-image",
        "an image built on this host, and two tasks that use it",
        "job.yaml",
        "base.sh",
        "words.sh"
    ),
    example!(
        "local-jax",
        "JAX on four processes; runs on this host, in a Python that has JAX",
        "job.yaml",
        "code/train.py"
    ),
    example!(
        "local-ps",
        "parameter servers and workers; runs on this host without an image",
        "job.yaml",
        "code/server.py",
        "code/worker.py"
    ),
    example!(
        "local-sweep",
        "a sweep, two jobs at a time; runs on this host without an image",
        "job.yaml",
        "code/train.py"
    ),
    example!(
        "local-tune",
        "prepare, train each combination of values, evaluate all; runs on this host without an image",
        "job.yaml",
        "code/prepare.py",
        "code/train.py",
        "code/evaluate.py"
    ),
    example!(
        "resnet-1gpu",
        "ResNet-50 with one GPU, image built from a block",
        "job.yaml",
        "targets.yaml",
        "requirements.txt",
        "train.py"
    ),
    example!(
        "torchrun-4x8",
        "torchrun on 4 nodes of 8 GPUs",
        "job.yaml",
        "targets.yaml",
        "requirements.txt",
        "train.py"
    ),
    example!(
        "tensorflow-ps",
        "TensorFlow with chief, workers and parameter servers",
        "job.yaml",
        "targets.yaml"
    ),
    example!("torchrun-elastic", "torchrun that goes on with fewer instances", "job.yaml", "targets.yaml"),
    example!("all-gpus", "every GPU of one host", "job.yaml", "targets.yaml", "code/train.py"),
    example!("horovod-mpi", "Horovod over MPI with ssh between instances", "job.yaml", "targets.yaml"),
    example!("ray", "a Ray cluster with a head and workers", "job.yaml", "targets.yaml", "tune.py"),
    example!("dag", "prepare, then train, then evaluate", "job.yaml", "targets.yaml"),
    example!("sweep", "one job for each combination of values", "job.yaml"),
    example!("tune", "a sweep between two roles of a job", "job.yaml", "targets.yaml"),
    example!("jupyter", "a notebook with a GPU and a port", "job.yaml", "targets.yaml"),
    example!("gpu-slice", "an inference server on a slice of a GPU", "job.yaml", "targets.yaml", "serve.py"),
    example!("openpai-short", "OpenPAI's short JSON template", "job.json", "targets.yaml"),
];

pub(crate) fn run(init: &InitArgs) -> Outcome {
    if init.list {
        let lines: String = EXAMPLES.iter().map(|(name, about, _)| format!("{name:16} {about}\n")).collect();
        terminal::print(&lines);
        return Outcome::Success;
    }
    let Some((name, _, files)) = EXAMPLES.iter().find(|(name, ..)| *name == init.example) else {
        let near = suggest::nearest(&init.example, EXAMPLES.iter().map(|(name, ..)| *name))
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        terminal::eprint(&format!(
            "jobc: unknown example `{}`{near} (`jobc init --list` lists the examples)\n",
            init.example
        ));
        return Outcome::UsageError;
    };
    // All or nothing: a starter job mixed with the user's own files would not work.
    let present: Vec<&str> =
        files.iter().map(|(file, _)| *file).filter(|file| init.directory.join(file).exists()).collect();
    if !present.is_empty() && !init.force {
        let list = suggest::list(present);
        terminal::eprint(&format!(
            "jobc: {list} in `{}` would be overwritten; use `--force` to overwrite\n",
            init.directory
        ));
        return Outcome::UsageError;
    }
    for (file, text) in *files {
        let path = init.directory.join(file);
        if let Err(error) = write(&path, &with_modeline(text)) {
            terminal::eprint(&format!("jobc: cannot write `{path}`: {}\n", reason(&error)));
            return Outcome::SystemError;
        }
        terminal::print(&format!("wrote {path}\n"));
    }
    let job = files.first().map_or("job.yaml", |(file, _)| file);
    terminal::print(&format!("from the example `{name}`; next: jobc build {}\n", init.directory.join(job)));
    Outcome::Success
}

/// The text of an example with a modeline for its new place.
fn with_modeline(text: &str) -> String {
    let prefix = "# yaml-language-server: $schema=../../schemas/";
    let Some((first, rest)) = text.split_once('\n').filter(|(first, _)| first.starts_with(prefix)) else {
        return text.to_owned();
    };
    let schema = if first.ends_with("/targets.v1.schema.json") { SchemaArg::Targets } else { SchemaArg::Job };
    modeline(schema).map_or_else(|| rest.to_owned(), |line| format!("{line}\n{rest}"))
}

fn write(path: &Utf8Path, text: &str) -> std::io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_str().is_empty()) {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, text)
}
