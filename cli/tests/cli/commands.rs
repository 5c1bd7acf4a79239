//! The commands beside `build`: each prints what it promises.

use camino::Utf8Path;
use serde_json::Value;
use snapbox::assert_data_eq;
use snapbox::str;

use crate::folder::{Folder, HELLO, Run, command, examples};

#[test]
fn help_names_every_command() {
    let folder = Folder::new();
    let run = folder.jobc(&["--help"]).exits(0);
    assert_data_eq!(
        run.out,
        str![[r#"
Compile one job file into Dockerfiles, OCI bundles, cgroup files, Kubernetes manifests and OpenPAI
jobs

Usage: jobc [OPTIONS] <COMMAND>

Commands:
  build        Write everything a job needs to run at its targets
  check        Check a job without writing anything
  run          Run a job, a built plan or one bundle on this machine
  ps           List the jobs of this user on this machine, or the tasks of one
  inspect      Show what is known of a job
  logs         Show what tasks print
  events       Show what a job goes through
  stats        Show what tasks use, once a second
  top          Watch what tasks use, on the whole terminal
  report       Write a page about a job: its time line, what it used, how it ended, the last it
               printed
  exec         Run a further program in a task
  trace        Count and time a task's calls to the drivers of GPUs, through strace
  stop         End jobs: ask every task, and kill what is left after the grace period
  kill         Send a signal to a job's tasks; `KILL` to all of them ends the job now
  pause        Freeze every task of jobs
  resume       Let frozen jobs go on
  wait         Wait until jobs have ended; exits with the job's exit code
  rm           Remove ended jobs: their records, logs and samples
  gc           Remove old records, and what killed commands have left
  image        Fetch, show and send images
  gpu          Show the GPUs of this machine and who has them
  lock         Write down the digest that each of a job's images stands for, in jobc.lock
  plan         Print the plan: what was decided, with every default filled in
  schema       Print a JSON Schema
  explain      Explain a diagnostic code; without one, list all
  backends     Show what each backend can express
  import       Rewrite a job of OpenPAI's as a job file
  init         Write a starter job
  lsp          Speak the Language Server Protocol on standard input and output, for editors
  doctor       Show what this machine can do for containers, and how to get what is missing
  completions  Print a shell's completion script
  man          Print the manual page
  oci          Make, start and remove containers as an OCI runtime does, for podman, containerd and
               others
  help         Print this message or the help of the given subcommand(s)

Options:
      --format <FORMAT>
          How findings are shown

          Possible values:
          - text:   With excerpts, for people
          - short:  One line a finding
          - json:   For programs
          - sarif:  SARIF 2.1.0, for code scanning
          - github: Annotations of GitHub Actions
          
          [default: text]

      --colour <WHEN>
          When to use colours
          
          [env: JOBC_COLOR=]
          [default: auto]
          [possible values: auto, always, never]

  -h, --help
          Print help (see a summary with '-h')

  -V, --version
          Print version

"#]]
    );
    let run = folder.jobc(&["build", "--help"]).exits(0);
    assert_data_eq!(
        run.out,
        str![[r#"
Write everything a job needs to run at its targets

Usage: jobc build [OPTIONS] [JOB]

Arguments:
  [JOB]
          The job file, or `-` for standard input; `job.yaml` of this folder unless given

Options:
      --format <FORMAT>
          How findings are shown

          Possible values:
          - text:   With excerpts, for people
          - short:  One line a finding
          - json:   For programs
          - sarif:  SARIF 2.1.0, for code scanning
          - github: Annotations of GitHub Actions
          
          [default: text]

      --set <NAME=VALUE>
          Set a parameter; may be repeated

      --colour <WHEN>
          When to use colours
          
          [env: JOBC_COLOR=]
          [default: auto]
          [possible values: auto, always, never]

      --params <FILE>
          Take parameters from a YAML or JSON file; may be repeated

  -t, --target <NAME>
          Build for this target; may be repeated

  -b, --backend <NAME>
          Write only this backend; may be repeated

      --targets <FILE>
          The targets file; otherwise `targets.yaml` beside the job file or above it, up to the
          repository's root

      --allow-lossy
          Go on where a backend cannot express something, and report it as a warning

      --locked
          Refuse an image that is not in jobc.lock

      --gpu-injection <HOW>
          What of the GPU set-up OCI bundles carry besides the NVIDIA environment

          Possible values:
          - hook: NVIDIA's prestart hook
          - cdi:  CDI device names as an annotation
          - none: Nothing

  -o, --output <DIR>
          Write to DIR/<target>/ in place of out/<job>/<target>/ beside the job file

      --check
          Write nothing; exit with 1 where the files on disk differ, and show how

      --stdout
          Print the files in place of writing them

  -h, --help
          Print help (see a summary with '-h')

"#]]
    );
    let version = folder.jobc(&["--version"]).exits(0).out;
    assert_eq!(version, format!("jobc {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn explain_has_a_page_for_each_code() {
    let folder = Folder::new();
    let list = folder.jobc(&["explain"]).exits(0).out;
    assert!(list.lines().count() > 50, "{list}");
    for line in list.lines() {
        let (code, title) = line.split_once("  ").unwrap();
        let page = folder.jobc(&["explain", code]).exits(0).out;
        assert_eq!(page.lines().next(), Some(format!("# {code}: {title}").as_str()));
        assert!(page.ends_with('\n'));
    }
    assert!(folder.jobc(&["explain", "j0001"]).exits(0).out.starts_with("# J0001: "));
    folder.jobc(&["explain", "J9999"]).exits(2).says("there is no code `J9999`");
}

#[test]
fn the_schemas_are_the_committed_ones() {
    let folder = Folder::new();
    let committed = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas");
    for name in ["job", "targets", "plan"] {
        let text = std::fs::read_to_string(committed.join(format!("{name}.v1.schema.json"))).unwrap();
        assert!(folder.jobc(&["schema", name]).exits(0).out == text, "{name}");
    }
    assert_eq!(folder.jobc(&["schema"]).exits(0).out, folder.jobc(&["schema", "job"]).exits(0).out);
    folder.jobc(&["schema", "jobs"]).exits(2).says("job");
}

#[test]
fn backends_shows_a_table_and_its_reasons() {
    let folder = Folder::new();
    let run = folder.jobc(&["backends"]).exits(0);
    for name in ["dockerfile", "oci", "cgroup", "kubernetes", "openpai"] {
        assert!(run.out.lines().any(|line| line.starts_with(name)), "{name} is not in\n{}", run.out);
    }
    let table: Value =
        serde_json::from_str(&folder.jobc(&["backends", "--format", "json"]).exits(0).out).unwrap();
    assert_eq!(table["backends"].as_array().unwrap().len(), 5);
    let features = table["features"].as_array().unwrap();
    assert!(features.len() > 20);
    for feature in features {
        for (backend, answer) in feature["backends"].as_object().unwrap() {
            let support = answer["support"].as_str().unwrap();
            assert!(["yes", "plan", "lossy", "no"].contains(&support), "{backend}: {support}");
            let reason = answer["why"].as_str().is_some_and(|why| !why.is_empty());
            assert_eq!(reason, matches!(support, "lossy" | "no"), "{backend}: {feature}");
        }
    }
    folder.write("targets.yaml", "version: 1\ntargets:\n  lab: {backends: [kubernetes]}\n");
    let lab: Value =
        serde_json::from_str(&folder.jobc(&["backends", "--target", "lab", "--format", "json"]).exits(0).out)
            .unwrap();
    assert_eq!(lab["backends"].as_array().unwrap().len(), 1);
    folder.jobc(&["backends", "--target", "lap"]).exits(1).says("did you mean `lab`?");
}

#[test]
fn each_starter_builds() {
    let folder = Folder::new();
    let list = folder.jobc(&["init", "--list"]).exits(0).out;
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let known: Vec<String> = examples().iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(
        {
            let mut sorted = names.clone();
            sorted.sort_unstable();
            sorted
        },
        known,
        "every example is a starter"
    );
    for name in names {
        let run = folder.jobc(&["init", name, "--example", name]).exits(0);
        assert!(run.out.contains(&format!("next: jobc build {name}/job.")), "{}", run.out);
        let build = folder.jobc(&["build", name]).exits(0);
        assert!(!build.err.contains("warning["), "{name}: {}", build.err);
        for (path, bytes) in crate::folder::contents(&folder.path().join(name)) {
            let text = String::from_utf8(bytes).unwrap();
            assert!(!text.contains("../../schemas"), "{name}/{path} names a schema that is not there");
        }
    }
}

#[test]
fn a_starter_replaces_nothing_unasked() {
    let folder = Folder::with_job("mine");
    folder.jobc(&["init"]).exits(2).says("`job.yaml`").says("--force");
    assert_eq!(folder.read("job.yaml"), "mine");
    folder.jobc(&["init", "--force"]).exits(0);
    assert!(folder.read("job.yaml").contains("name: hello"));
    folder.jobc(&["init", "x", "--example", "torchrun"]).exits(2).says("torchrun-4x8");
    assert!(!folder.path().join("x").exists());
}

#[test]
fn an_openpai_job_is_rewritten() {
    let folder = Folder::new();
    let job = "protocolVersion: 2\nname: Count\ntype: job\nprerequisites:\n  - {name: py, type: dockerimage, uri: 'python:3.12-slim'}\n\
        taskRoles:\n  main:\n    dockerImage: py\n    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}\n    commands: [python count.py]\n";
    folder.write("pai.yaml", job);
    let printed = folder.jobc(&["import", "pai.yaml"]).exits(0).says("becomes `count`").out;
    assert!(printed.contains("run: python count.py"), "{printed}");
    folder.jobc(&["import", "pai.yaml", "-o", "job.yaml"]).exits(0).says("jobc build job.yaml");
    assert_eq!(folder.read("job.yaml"), printed);
    folder.jobc(&["check", "job.yaml"]).exits(0);
    folder.jobc(&["import", "pai.yaml", "-o", "job.yaml"]).exits(2).says("--force");
    folder.jobc(&["import", "job.yaml"]).exits(2).says("already");
    folder.write("broken.yaml", &job.replace("dockerImage: py", "dockerImage: python"));
    folder.jobc(&["import", "broken.yaml", "-o", "other.yaml"]).exits(1).says("J0527");
    assert!(!folder.path().join("other.yaml").exists());
    folder.jobc(&["import", "absent.yaml"]).exits(2).says("no such file");
}

#[test]
fn completions_parse() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.jobc(&["completions", shell]).exits(0).out;
        assert!(script.contains("jobc") && script.contains("backends"), "{shell}: {script}");
        folder.write("script", &script);
        let check: &[&str] = match shell {
            "bash" => &["bash", "-n", "script"],
            "zsh" => &["zsh", "-n", "script"],
            "fish" => &["fish", "--no-execute", "script"],
            _ => continue,
        };
        if shell != "bash" && command(shell).arg("--version").output().is_err() {
            eprintln!("skipped: there is no `{shell}` to parse its script");
            continue;
        }
        let run = Run::of(folder.command(check[0]).args(&check[1..])).exits(0);
        assert_eq!(run.err, "");
    }
    // Bash offers what was asked for.
    let line = "source <($JOBC completions bash); COMP_WORDS=(jobc expl); COMP_CWORD=1; _jobc jobc expl jobc; echo ${COMPREPLY[@]}";
    assert_eq!(folder.bash(line).exits(0).out, "explain\n");
}

#[test]
fn the_manual_pages_render() {
    let folder = Folder::new();
    folder.jobc(&["man", "biuld"]).exits(2).says("there is no command `biuld`");
    let has_man = command("man").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has_man {
        eprintln!("skipped: there is no `man` to render the pages with");
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
        let page = folder.jobc(&arguments).exits(0).out;
        assert!(page.contains(".TH jobc") && page.contains(".SH SYNOPSIS"), "{name}: {page}");
        if has_man {
            folder.write("page.1", &page);
            let run =
                Run::of(folder.command("man").args(["--warnings", "-l", "page.1"]).env("MANPAGER", "cat"))
                    .exits(0);
            assert!(run.out.contains("SYNOPSIS"), "{name}: {}", run.out);
            assert_eq!(run.err, "", "{name}");
        }
    }
}

#[test]
fn a_plan_shows_the_defaults() {
    let folder = Folder::with_job(HELLO);
    let yaml = folder.jobc(&["plan"]).exits(0).out;
    let json: Value = serde_json::from_str(&folder.jobc(&["plan", "--format", "json"]).exits(0).out).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["jobs"].as_array().unwrap().len(), 1);
    assert!(yaml.starts_with("version: 1\njobs:\n"), "{yaml}");
    let built = Folder::with_job(HELLO);
    built.jobc(&["build", "--target", "local"]).exits(0);
    let target = built.jobc(&["plan", "--target", "local", "--format", "json"]).exits(0).out;
    assert_eq!(target, built.read("out/hello/local/plan.json"), "what is printed is what is written");
}
