//! The examples that `jobc init` writes, and the built-in templates, which are examples too.

use jobc_compiler::template::{Description, built_in, describe};

/// An example.
pub(crate) struct Example {
    /// The name.
    pub name: &'static str,
    /// A short description.
    pub about: &'static str,
    /// What to do with it.
    pub next: Next,
    /// The files, the job file first: path and text.
    pub files: &'static [(&'static str, &'static str)],
}

/// What to do with an example after it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Run it on this host, in the host's own files.
    Run,
    /// Run it on this host, which pulls this image.
    Pull(&'static str),
    /// Make this base image on this host by the example's `base.sh`, then run it.
    Base(&'static str),
    /// Look at what it compiles to: it needs a cluster, GPUs or large images.
    Build,
    /// Run the example of a template on this host, or build it for a cluster.
    Template(BuiltIn),
}

macro_rules! example {
    ($name:literal, $next:expr, $about:literal, $($file:literal),+) => {
        Example {
            name: $name,
            about: $about,
            next: $next,
            files: &[$(($file, include_str!(concat!("../../examples/", $name, "/", $file)))),+],
        }
    };
}

/// The examples, in the order of `jobc init --list`.
pub(crate) const EXAMPLES: &[Example] = &[
    example!(
        "local-dag",
        Next::Run,
        "prepare, train twice, compare; runs on this host without an image",
        "job.yaml",
        "code/prepare.py",
        "code/train.py",
        "code/compare.py"
    ),
    example!(
        "local-handoff",
        Next::Run,
        "files from one role to the next, served by its port; runs on this host without an image",
        "job.yaml",
        "code/prepare.py",
        "code/train.py"
    ),
    example!(
        "local-image",
        Next::Base("base:1"),
        "an image built on this host, and two tasks that use it",
        "job.yaml",
        "base.sh",
        "words.sh"
    ),
    example!(
        "local-jax",
        Next::Run,
        "JAX on four processes; runs on this host, in a Python that has JAX",
        "job.yaml",
        "code/train.py"
    ),
    example!(
        "local-ps",
        Next::Run,
        "parameter servers and workers; runs on this host without an image",
        "job.yaml",
        "code/server.py",
        "code/worker.py"
    ),
    example!(
        "local-sweep",
        Next::Run,
        "a sweep, two jobs at a time; runs on this host without an image",
        "job.yaml",
        "code/train.py"
    ),
    example!(
        "local-tune",
        Next::Run,
        "prepare, train each combination of values, evaluate all; runs on this host without an image",
        "job.yaml",
        "code/prepare.py",
        "code/train.py",
        "code/evaluate.py"
    ),
    example!(
        "hello-cpu",
        Next::Pull("python:3.12-slim"),
        "two instances that print hello, no GPU; pulls `python:3.12-slim`",
        "job.yaml"
    ),
    example!(
        "resnet-1gpu",
        Next::Build,
        "ResNet-50 with one GPU, image built from a block",
        "job.yaml",
        "targets.yaml",
        "requirements.txt",
        "train.py"
    ),
    example!(
        "torchrun-4x8",
        Next::Build,
        "torchrun on 4 nodes of 8 GPUs",
        "job.yaml",
        "targets.yaml",
        "requirements.txt",
        "train.py"
    ),
    example!(
        "tensorflow-ps",
        Next::Build,
        "TensorFlow with chief, workers and parameter servers",
        "job.yaml",
        "targets.yaml"
    ),
    example!(
        "torchrun-elastic",
        Next::Build,
        "torchrun that goes on with fewer instances",
        "job.yaml",
        "targets.yaml"
    ),
    example!(
        "code",
        Next::Build,
        "your code in a public image, without a registry",
        "job.yaml",
        "targets.yaml",
        "src/train.py"
    ),
    example!("all-gpus", Next::Build, "every GPU of one host", "job.yaml", "targets.yaml", "code/train.py"),
    example!(
        "horovod-mpi",
        Next::Build,
        "Horovod over MPI with ssh between instances",
        "job.yaml",
        "targets.yaml"
    ),
    example!(
        "ray",
        Next::Build,
        "a Ray cluster with a head and workers",
        "job.yaml",
        "targets.yaml",
        "tune.py"
    ),
    example!("dag", Next::Build, "prepare, then train, then evaluate", "job.yaml", "targets.yaml"),
    example!("sweep", Next::Build, "one job for each combination of values", "job.yaml"),
    example!("tune", Next::Build, "a sweep between two roles of a job", "job.yaml", "targets.yaml"),
    example!("jupyter", Next::Build, "a notebook with a GPU and a port", "job.yaml", "targets.yaml"),
    example!(
        "gpu-slice",
        Next::Build,
        "an inference server on a slice of a GPU",
        "job.yaml",
        "targets.yaml",
        "serve.py"
    ),
    example!("gpu-turns", Next::Build, "trainings that take turns on one GPU", "job.yaml", "code/train.py"),
    example!("openpai-short", Next::Build, "OpenPAI's short JSON template", "job.json", "targets.yaml"),
];

/// A built-in template with the example that uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BuiltIn {
    /// The name after `std/`.
    pub name: &'static str,
    /// The template file.
    pub text: &'static str,
    /// A job file that uses it.
    pub example: &'static str,
    /// The targets file of the example.
    pub targets: &'static str,
    /// How many GPUs the example takes.
    pub gpus: usize,
}

/// The example of a template: the template's name, the job file, the targets file and the number of GPUs.
type TemplateExample = (&'static str, &'static str, &'static str, usize);

macro_rules! template_examples {
    ($($name:literal: $gpus:literal),+ $(,)?) => {
        &[$((
            $name,
            include_str!(concat!("../../examples/templates/", $name, "/job.yaml")),
            include_str!(concat!("../../examples/templates/", $name, "/targets.yaml")),
            $gpus,
        )),+]
    };
}

/// The example of each template.
const TEMPLATE_EXAMPLES: &[TemplateExample] = template_examples![
    "code-server": 0,
    "data-prepare": 1,
    "ddp": 2,
    "deepspeed": 1,
    "elastic": 2,
    "horovod": 2,
    "jax": 1,
    "jupyter": 0,
    "mpi": 0,
    "nccl-test": 1,
    "ray": 1,
    "sweep": 1,
    "tensorboard": 1,
    "tensorflow-ps": 1,
    "torchrun": 1,
    "vllm-serve": 1,
];

/// A program for examples that run a user's own.
const TRAIN: &str = include_str!("../../examples/templates/train.py");

/// The built-in templates, by name.
pub(crate) fn templates() -> impl Iterator<Item = BuiltIn> {
    built_in().map(|(name, text)| {
        let (_, example, targets, gpus) = TEMPLATE_EXAMPLES
            .iter()
            .find(|(known, ..)| *known == name)
            .expect("a template has an example: a test reads them all");
        BuiltIn { name, text, example, targets, gpus: *gpus }
    })
}

impl BuiltIn {
    /// The description in the template.
    pub(crate) fn describe(&self) -> Description {
        describe(self.text).expect("a built-in template is sound: a test reads them all")
    }

    /// The files of the example, the job file first: path and text.
    pub(crate) fn files(&self) -> Vec<(&'static str, &'static str)> {
        let mut files = vec![("job.yaml", self.example), ("targets.yaml", self.targets)];
        if self.example.contains("source: ./code,") {
            files.push(("code/train.py", TRAIN));
        }
        files
    }

    /// The environment variables that the secrets of the example are read from.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &'static str> {
        self.example.split("{env: ").skip(1).filter_map(|rest| rest.split('}').next())
    }

    /// The example without its modeline.
    pub(crate) fn example_text(&self) -> &'static str {
        match self.example.split_once('\n') {
            Some((first, rest)) if first.starts_with("# yaml-language-server:") => rest,
            _ => self.example,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_template_has_an_example_that_uses_it() {
        for template in templates() {
            let uses = format!("uses: std/{}\n", template.name);
            assert!(template.example_text().contains(&uses), "std/{}", template.name);
            assert!(template.example_text().starts_with("version: 1\n"), "std/{}", template.name);
        }
        assert_eq!(templates().count(), TEMPLATE_EXAMPLES.len());
    }
}
