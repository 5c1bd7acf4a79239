//! A batch script of Slurm, a line of `docker run`, a Compose file, a manifest of Kubernetes, or a file of a small format:
//! imported, then every pass.
#![no_main]
libfuzzer_sys::fuzz_target!(|text: &str| {
    // What is none of them is the target `job`'s.
    if ["#SBATCH", "docker", "podman", "services", "apiVersion", "accelerators", "entrypoint", "containerEnv"]
        .iter()
        .any(|word| text.contains(word))
    {
        jobc_fuzz::compile::build(text, None);
    }
});
