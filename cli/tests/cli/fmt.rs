//! `jobc fmt`: files in their canonical form.

use crate::directory::Directory;

const LOOSE: &str = "name: hello\nversion: 1  # the format\nroles:\n    # about main\n    main:\n        run: 'echo hello'\n        resources: {cpu: 1}\nimage: busybox:1.36\n";
const CANONICAL: &str = "version: 1  # the format\nname: hello\nimage: busybox:1.36\nroles:\n  # about main\n  main:\n    resources: {cpu: 1}\n    run: echo hello\n";

#[test]
fn files_are_formatted_in_place() {
    let directory = Directory::with_job(CANONICAL);
    directory.write("more/job.yaml", LOOSE);
    directory.write("more/golden/hello/lab/openpai/job.yaml", LOOSE);
    directory.write("targets.yaml", "version: 1\ntargets:\n    lab: {backends: ['oci']}\n");
    let run = directory.jobc(&["fmt", "--check"]).exits(1).says("2 files are not formatted");
    assert!(
        run.out.contains("-    run: 'echo hello'") || run.out.contains("-        run: 'echo hello'"),
        "{}",
        run.out
    );
    assert_eq!(directory.read("more/job.yaml"), LOOSE);
    assert_eq!(directory.jobc(&["fmt"]).exits(0).out, "more/job.yaml\ntargets.yaml\n");
    assert_eq!(directory.read("more/job.yaml"), CANONICAL);
    assert_eq!(directory.read("targets.yaml"), "version: 1\ntargets:\n  lab: {backends: [oci]}\n");
    assert_eq!(directory.read("more/golden/hello/lab/openpai/job.yaml"), LOOSE);
    assert_eq!(directory.jobc(&["fmt"]).exits(0).out, "");
    directory.jobc(&["fmt", "--check"]).exits(0);
}

#[test]
fn broken_files_and_json_are_left_alone() {
    let directory = Directory::with_job("version: 1\nname: [x\n");
    let run = directory.jobc(&["fmt"]).exits(1);
    assert!(run.err.contains("job.yaml:"), "{}", run.err);
    assert_eq!(directory.read("job.yaml"), "version: 1\nname: [x\n");
    directory.write("job.json", "{\"version\": 1}");
    directory.jobc(&["fmt", "job.json"]).exits(0).says("is JSON");
    directory.jobc(&["fmt", "absent.yaml"]).exits(2).says("no such file");
}
