//! Known causes of a failure in the last lines of a task, with what to do.

use std::borrow::Cow;

use jobc_compiler::suggest;

/// A cause: words of which a line has one, whether it concerns tasks with GPUs or those without, and the sentence for
/// the user.
struct Cause {
    words: &'static [&'static str],
    has_gpus: bool,
    sentence: &'static str,
}

/// The words are those of the CUDA runtime and driver, PyTorch, TensorFlow and JAX.
const CAUSES: [Cause; 2] = [
    Cause {
        words: &[
            "CUDA out of memory",
            "CUDA_ERROR_OUT_OF_MEMORY",
            "OutOfMemoryError: CUDA",
            "RESOURCE_EXHAUSTED: Out of memory",
        ],
        has_gpus: true,
        sentence: "the memory of the GPU was exhausted; use a smaller batch or model, more GPUs, or a GPU with more memory",
    },
    Cause {
        words: &[
            "Found no NVIDIA driver",
            "no CUDA-capable device",
            "No CUDA GPUs are available",
            "CUDA driver initialization failed",
            "CUDA_ERROR_NO_DEVICE",
            "Torch not compiled with CUDA enabled",
            "libcuda.so.1: cannot open shared object file",
        ],
        has_gpus: false,
        sentence: "the task has no GPU, because it requests none; write `gpu: 1` under `resources`, or `jobc run --gpus 1 -- COMMAND`",
    },
];

/// How shells end a line about a program that they do not find: bash; dash and BusyBox.
const NOT_FOUND: [&str; 2] = [": command not found", ": not found"];

/// The programs that jobs start most.
const PROGRAMS: [&str; 12] = [
    "python3",
    "python",
    "torchrun",
    "accelerate",
    "deepspeed",
    "horovodrun",
    "mpirun",
    "nvidia-smi",
    "pip",
    "conda",
    "bash",
    "uv",
];

/// What is known about a failure from the last lines of the task, the newest first; `has_gpus` of the task.
pub(super) fn of<'a>(
    lines: impl DoubleEndedIterator<Item = &'a str>,
    has_gpus: bool,
) -> Option<Cow<'static, str>> {
    lines.rev().find_map(|line| {
        let fits = |cause: &&Cause| {
            cause.has_gpus == has_gpus && cause.words.iter().any(|words| line.contains(words))
        };
        let known = CAUSES.iter().find(fits).map(|cause| Cow::Borrowed(cause.sentence));
        known.or_else(|| absent_program(line).map(Cow::Owned))
    })
}

/// What to write for a program that a shell has not found, if another one was meant.
fn absent_program(line: &str) -> Option<String> {
    let before = NOT_FOUND.iter().find_map(|end| line.trim_end().strip_suffix(end))?;
    let name = before.rsplit([' ', ':']).next()?;
    if name == "python" {
        return Some("no program is named `python` here; write `python3`, or use an image or environment that has `python`".to_owned());
    }
    let near = suggest::nearest(name, PROGRAMS.iter().copied()).filter(|_| !PROGRAMS.contains(&name))?;
    Some(format!("no program is named `{name}` here; did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn causes_are_known_by_the_words_of_the_libraries() {
        let check = |text: &str, has_gpus: bool, expected: Option<&str>| {
            let found = of(text.lines(), has_gpus);
            assert_eq!(found.as_deref().and_then(|sentence| sentence.split(';').next()), expected, "{text}");
        };
        let oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.\nexit";
        check(oom, true, Some("the memory of the GPU was exhausted"));
        check(oom, false, None);
        let none = "RuntimeError: Found no NVIDIA driver on your system.";
        check(none, false, Some("the task has no GPU, because it requests none"));
        check(none, true, None);
        let failed = "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.";
        check(failed, false, Some("the task has no GPU, because it requests none"));
        check("bash: line 1: python: command not found", true, Some("no program is named `python` here"));
        check("sh: 1: torchrunn: not found", false, Some("no program is named `torchrunn` here"));
        check("bash: line 1: my-own-tool: command not found", false, None);
        // The supervisor has added the advice to its own error.
        let absent = "main-0: exit 127, cannot execute `python`: no such file or directory (ENOENT)";
        check(absent, false, None);
        check("loss 0.1", true, None);
    }
}
