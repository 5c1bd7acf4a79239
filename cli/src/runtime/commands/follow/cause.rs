//! Known causes of a failure in the last lines of a task, with what to do.

/// A cause: words of which a line has one, whether it concerns tasks with GPUs, and the sentence for the user.
struct Cause {
    words: &'static [&'static str],
    /// `None` for tasks with and without GPUs.
    has_gpus: Option<bool>,
    sentence: &'static str,
}

/// The words are those of the CUDA runtime and driver, PyTorch, TensorFlow, JAX and shells.
const CAUSES: [Cause; 3] = [
    Cause {
        words: &[
            "CUDA out of memory",
            "CUDA_ERROR_OUT_OF_MEMORY",
            "OutOfMemoryError: CUDA",
            "RESOURCE_EXHAUSTED: Out of memory",
        ],
        has_gpus: Some(true),
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
        has_gpus: Some(false),
        sentence: "the task has no GPU, because it requests none; write `gpu: 1` under `resources`, or `jobc run --gpus 1 -- COMMAND`",
    },
    Cause {
        words: &["python: not found", "python: command not found"],
        has_gpus: None,
        sentence: "no program is named `python` here; write `python3`, or use an image or environment that has `python`",
    },
];

/// What is known about a failure from the last lines of the task, the newest first; `has_gpus` of the task.
pub(super) fn of<'a>(
    lines: impl DoubleEndedIterator<Item = &'a str>,
    has_gpus: bool,
) -> Option<&'static str> {
    lines.rev().find_map(|line| {
        let fits = |cause: &&Cause| {
            cause.has_gpus.is_none_or(|wanted| wanted == has_gpus)
                && cause.words.iter().any(|words| line.contains(words))
        };
        CAUSES.iter().find(fits).map(|cause| cause.sentence)
    })
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn causes_are_known_by_the_words_of_the_libraries() {
        let check = |text: &str, has_gpus: bool, expected: Option<&str>| {
            let found = of(text.lines(), has_gpus);
            assert_eq!(found.and_then(|sentence| sentence.split(';').next()), expected, "{text}");
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
        // The supervisor has added the advice to its own error.
        let absent = "main-0: exit 127, cannot execute `python`: no such file or directory (ENOENT)";
        check(absent, false, None);
        check("loss 0.1", true, None);
    }
}
