//! Targets that `jobc submit` and the commands about jobs on clusters refuse.

use crate::directory::Directory;

#[test]
fn jobs_for_openpai_are_built_and_not_submitted() {
    let directory = Directory::new();
    directory.write(
        "targets.yaml",
        "version: 1\ntargets: {pai: {backends: [openpai]}, local: {backends: [oci]}}\n",
    );
    directory.write(
        "job.yaml",
        "version: 1\nname: j\nimage: python:3.12-slim\nroles:\n  main:\n    resources: {cpu: 1, memory: 1GiB}\n    run: python -V\n",
    );
    let refused = directory.jobc(&["submit", "job.yaml", "--target", "pai"]).exits(2);
    assert!(refused.err.contains("jobs cannot be submitted to the target `pai`"), "{}", refused.err);
    assert!(refused.err.contains("submit that file in OpenPAI's web portal"), "{}", refused.err);
    let refused = directory.jobc(&["targets", "check", "pai"]).exits(2);
    assert!(refused.err.contains("submit that file in OpenPAI's web portal"), "{}", refused.err);
    let refused = directory.jobc(&["submit", "job.yaml", "--target", "local"]).exits(2);
    assert!(
        refused.err.contains("it needs the backend `kubernetes` or `slurm`, or `ssh`"),
        "{}",
        refused.err
    );
}
