//! `jobc plan`: what is beside the summary.

use crate::directory::Directory;

const JOB: &str = "\
version: 1
name: train
image: host
timeout: 90m
roles:
  train:
    instances: 2
    resources: {cpu: 4, memory: 1.5GiB, gpu: {count: 8, model: A100-80GB}}
    run: torchrun train.py
";
const TARGETS: &str = "\
version: 1
targets:
  cluster: {backends: [slurm], slurm: {container: none, partition: gpu, gpu_types: {A100-80GB: a100}}}
  here: {backends: [oci]}
";

#[test]
fn the_request_of_a_slurm_target_is_beside_the_lines_of_the_job() {
    let directory = Directory::with_job(JOB);
    directory.write("targets.yaml", TARGETS);
    let plan = directory.jobc(&["plan", "--target", "cluster"]).exits(0).out;
    insta::assert_snapshot!(plan.split_once("slurm/job.sbatch").expect("it has the script").1);
    let plan = directory.jobc(&["plan", "--target", "here"]).exits(0).out;
    assert!(!plan.contains("#SBATCH"), "{plan}");
}

#[test]
fn the_column_of_gpus_says_what_is_shared_and_lent() {
    let directory = Directory::with_job(
        "version: 1\nname: shares\nimage: host\npreemption: {exit_codes: [85]}\nroles:\n  lent: {resources: {cpu: 1, memory: 1GiB, gpu: {count: 1, share: {grow: 4}}}, run: a}\n  slice: {resources: {cpu: 1, memory: 1GiB, gpu: {count: 1, share: {memory: 8GiB}}}, run: a}\n  turns: {resources: {cpu: 1, memory: 1GiB, gpu: {count: 1, share: {time: true, memory: 8GiB}}}, run: a}\n",
    );
    let plan = directory.jobc(&["plan"]).exits(0).out;
    for cell in ["  1 to 4  ", "  1 × 8GiB  ", "  1 × 8GiB in turns  "] {
        assert!(plan.contains(cell), "{cell}: {plan}");
    }
}
