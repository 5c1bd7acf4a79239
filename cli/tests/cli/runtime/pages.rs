//! Help and manual pages, with the commands of the runtime.

use snapbox::assert_data_eq;
use snapbox::str;

use crate::directory::{Directory, Run, command};

#[test]
fn help_names_every_command() {
    let directory = Directory::new();
    let run = directory.jobc(&["--help"]).exits(0);
    assert_data_eq!(
        run.out,
        str![[r#"
Compile a job file into Dockerfiles, OCI bundles, cgroup files, Kubernetes, Slurm and OpenPAI jobs,
or run it on this host

Usage: jobc [OPTIONS] <COMMAND>

Write:
  init          Create a starter job from an example
  check         Check job files without writing anything
  fmt           Format job files and targets files
  build         Compile a job file into the files of each target
  plan          Print a summary of the resolved plan, or all of it
  diff          Compare the plan and the built files with a revision
  why           Trace a line of a built file to the job file, or the reverse
  explain       Explain a diagnostic code or a field, or list all codes
  std           List and show the built-in templates
  import        Convert a file of another tool to a job file
  backends      Show which fields each backend supports
  backend       Test a backend that is a plug-in

Run:
  run           Run a job file, a command or an OCI bundle on this host
  submit        Submit a job to a cluster
  ps            List your jobs, the tasks of a job, or the jobs of a sweep
  logs          Show the output of tasks
  exec          Run a command in a running task
  stop          Stop jobs
  inspect       Show the details of a job
  events        Show the events of a job
  stats         Show the resource usage of tasks, once per second
  top           Show the resource usage of tasks in full screen
  report        Write an HTML report of a job or a sweep
  history       Show what jobs used, and suggest smaller limits
  metrics       Print metrics of the jobs on this host for Prometheus
  serve         Serve a web page and a REST API to write, submit and watch jobs
  port-forward  Make ports of tasks on a cluster available on this host
  copy          Copy files to or from a task on a cluster
  trace         Count and time the GPU driver calls of a task with strace
  wait          Wait until jobs end, and exit with the exit code of the job
  kill          Send a signal to the tasks of a job
  pause         Pause all tasks of jobs
  suspend       End the tasks of jobs until they are resumed [preview]
  resume        Resume paused and suspended jobs
  rm            Remove the records, logs and samples of finished jobs
  gc            Remove old jobs, and leftovers of killed commands

Images:
  image         Manage images: pull, build, import, save, push
  lock          Record the digests of a job's images in jobc.lock

GPUs:
  gpu           List GPUs and GPU leases, and write CDI files

Editor and CI:
  test          Compare the files of all jobs with their golden files
  lsp           Start the language server for editors
  mcp           Serve tools to AI agents
  skill         Print how AI agents work with jobc
  schema        Print a JSON Schema, or the OpenAPI document of `jobc serve`

Host:
  doctor        Check whether this host can run containers, and suggest fixes
  targets       List targets, and check access to clusters
  config        List and change user and project settings
  oci           OCI runtime commands for podman, containerd and other engines
  completions   Print a shell completion script
  man           Print a manual page

Options:
      --color <WHEN>
          When to use colors [default: auto]
          
          [env: JOBC_COLOR=]
          [possible values: auto, always, never]

      --format <FORMAT>
          Output format of findings

          Possible values:
          - text:   Text with source excerpts
          - short:  One line per finding
          - json:   JSON
          - sarif:  SARIF 2.1.0, for code scanning
          - github: Annotations for GitHub Actions
          
          [default: text]

  -h, --help
          Print help (see a summary with '-h')

  -V, --version
          Print version

Run `jobc COMMAND --help` for the options of a command.

"#]]
    );
    let run = directory.jobc(&["build", "--help"]).exits(0);
    assert_data_eq!(
        run.out,
        str![[r#"
Compile a job file into the files of each target

Usage: jobc build [OPTIONS] [JOB]

Arguments:
  [JOB]
          Job file, or `-` for stdin [default: `job.yaml` in the current directory]
          
          A directory stands for the `job.yaml`, `job.yml` or `job.json` in it.

Options:
      --name <NAME>
          Job to read, from a file with several objects of Kubernetes that run pods

  -f, --file <FILE>
          Compose file that changes those before it (repeatable); no override file is read then

      --profile <NAME>
          Profile of a Compose file whose services are in the job (repeatable)

      --set <NAME=VALUE>
          Set a parameter (repeatable)
          
          Example: `--set epochs=3`. It takes precedence over `--params`.

      --params <FILE>
          Read parameters from a YAML or JSON file (repeatable)

  -t, --target <NAME>
          Target to build for (repeatable) [default: `default` of the targets file, or all in it]
          
          Without a targets file there are three built-in targets: `local`, which is the default,
          `kubernetes` and `openpai`.

  -b, --backend <NAME>
          Backend to use (repeatable) [default: all backends of the target]
          
          The backends are `dockerfile`, `oci`, `cgroup`, `kubernetes`, `openpai` and `slurm`.
          Others are plug-ins.

      --targets <FILE>
          Targets file [default: `targets.yaml` next to the job file or in a parent directory]

      --allow-lossy
          Accept what a backend cannot express exactly, with a warning instead of an error

      --locked
          Fail if an image is not in jobc.lock

      --gpu-injection <MODE>
          GPU setup in OCI bundles besides the NVIDIA environment variables [default: from the
          target, or none]

          Possible values:
          - hook: NVIDIA prestart hook
          - cdi:  CDI device names in an annotation
          - none: Nothing

  -o, --output <DIR>
          Write to `DIR/<target>/` [default: `out/<job>/<target>/` next to the job file]
          
          The jobs of a matrix go to `DIR/<job>/<target>/`.

      --check
          Write nothing; print a diff and exit with status 1 if the files on disk differ

      --stdout
          Print the files instead of writing them

      --explain
          Print the files with the reason for each line instead of writing them
          
          A reason is a field of the job file, a setting of the target, or a default. `jobc why
          FILE:LINE` has the reasons for a line of a written file.

      --provenance
          Label the files with the digest of the plan, the version of jobc and the Git state of the
          job
          
          Such files change with every commit. `jobc diff` and `jobc test` ignore these labels.

      --sbom <DIR>
          Also write software bills of materials (SBOMs) of the images in the image store to
          `DIR/<job>/<target>/`

      --watch
          Rebuild when an input file changes

      --color <WHEN>
          When to use colors [default: auto]
          
          [env: JOBC_COLOR=]
          [possible values: auto, always, never]

      --format <FORMAT>
          Output format of findings

          Possible values:
          - text:   Text with source excerpts
          - short:  One line per finding
          - json:   JSON
          - sarif:  SARIF 2.1.0, for code scanning
          - github: Annotations for GitHub Actions
          
          [default: text]

  -h, --help
          Print help (see a summary with '-h')

"#]]
    );
    let version = directory.jobc(&["--version"]).exits(0).out;
    assert_eq!(version, format!("jobc {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_manual_pages_render() {
    let directory = Directory::new();
    directory.jobc(&["man", "biuld"]).exits(2).says("unknown command `biuld`");
    let has_man = command("man").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has_man {
        jobc_test_skip::skip("man");
    }
    for name in [
        "",
        "build",
        "check",
        "plan",
        "schema",
        "explain",
        "backends",
        "init",
        "run",
        "oci",
        "completions",
        "man",
    ] {
        let arguments: Vec<&str> = ["man", name].into_iter().filter(|name| !name.is_empty()).collect();
        let page = directory.jobc(&arguments).exits(0).out;
        assert!(page.contains(".TH jobc") && page.contains(".SH SYNOPSIS"), "{name}: {page}");
        if has_man {
            directory.write("page.1", &page);
            let run =
                Run::of(directory.command("man").args(["--warnings", "-l", "page.1"]).env("MANPAGER", "cat"))
                    .exits(0);
            assert!(run.out.contains("SYNOPSIS"), "{name}: {}", run.out);
            assert_eq!(run.err, "", "{name}");
        }
    }
}

#[test]
fn all_manual_pages_are_written_to_a_directory() {
    let directory = Directory::new();
    let run = directory.jobc(&["man", "--all", "out/man1"]).exits(0);
    assert_eq!((run.out.as_str(), run.err.as_str()), ("", ""));
    for (page, title) in [
        ("jobc.1", ".TH jobc 1"),
        ("jobc-check.1", ".TH jobc-check 1"),
        ("jobc-image-build.1", ".TH jobc-image-build 1"),
    ] {
        let text = directory.read(&format!("out/man1/{page}"));
        assert!(text.contains(title), "{page}: {text}");
    }
    let synopsis = |page: &str| {
        let text = directory.read(&format!("out/man1/{page}"));
        text.split_once(".SH SYNOPSIS\n").unwrap().1.split_once("\n.SH").unwrap().0.to_owned()
    };
    assert_eq!(
        synopsis("jobc-run.1"),
        "\\fBjobc run\\fR [OPTIONS] [PATH]\n.br\n\\fBjobc run\\fR [OPTIONS] \\-\\- COMMAND...\n.br\n\
         \\fBjobc run\\fR [OPTIONS] \\-\\-image IMAGE \\-\\- COMMAND..."
    );
    assert_eq!(synopsis("jobc-image-build.1"), "\\fBjobc image build\\fR [OPTIONS] [CONTEXT]");
    assert_eq!(synopsis("jobc.1"), "\\fBjobc\\fR [OPTIONS] <COMMAND>");
    directory.write("file", "");
    directory.jobc(&["man", "--all", "file"]).exits(3).says("cannot write manual pages to `file`");
    directory.jobc(&["man", "check", "--all", "out"]).exits(2).says("cannot be used with");
}
