//! The commands besides `build`: each prints what its help says.

use camino::Utf8Path;
use serde_json::Value;

use crate::directory::{Directory, HELLO, Run, binary, command, examples};

#[test]
fn explain_has_a_page_for_each_code() {
    let directory = Directory::new();
    let list = directory.jobc(&["explain"]).exits(0).out;
    assert!(list.lines().count() > 50, "{list}");
    // Each is a start of the program; the pages themselves are read in `tests/errors.rs`.
    for line in list.lines().step_by(16) {
        let (code, title) = line.split_once("  ").unwrap();
        let page = directory.jobc(&["explain", code]).exits(0).out;
        assert_eq!(page.lines().next(), Some(format!("# {code}: {title}").as_str()));
        assert!(page.ends_with('\n'));
    }
    assert!(directory.jobc(&["explain", "j0001"]).exits(0).out.starts_with("# J0001: "));
    directory.jobc(&["explain", "J9999"]).exits(2).says("unknown code `J9999`");
}

#[test]
fn the_schemas_are_the_committed_ones() {
    let directory = Directory::new();
    let committed = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas");
    for name in ["job", "targets", "plan"] {
        let text = std::fs::read_to_string(committed.join(format!("{name}.v1.schema.json"))).unwrap();
        assert!(directory.jobc(&["schema", name]).exits(0).out == text, "{name}");
    }
    assert_eq!(directory.jobc(&["schema"]).exits(0).out, directory.jobc(&["schema", "job"]).exits(0).out);
    directory.jobc(&["schema", "jobs"]).exits(2).says("job");
}

#[test]
fn a_schema_has_a_path() {
    let directory = Directory::new();
    let run = |arguments: &[&str]| {
        Run::of(
            directory.command(binary()).args(arguments).env("XDG_DATA_HOME", directory.path().join("data")),
        )
    };
    for name in ["job", "targets", "plan"] {
        let path = run(&["schema", name, "--path"]).exits(0).out;
        assert_eq!(path, format!("{}/data/jobc/schemas/{name}.v1.schema.json\n", directory.path()));
        assert_eq!(std::fs::read_to_string(path.trim_end()).unwrap(), run(&["schema", name]).exits(0).out);
    }
    // The copy of another version is replaced.
    let path = "data/jobc/schemas/job.v1.schema.json";
    directory.write(path, "{}");
    run(&["schema", "--path"]).exits(0);
    assert_eq!(directory.read(path), run(&["schema"]).exits(0).out);
    assert_eq!(
        crate::directory::contents(&directory.path().join("data")).len(),
        3,
        "temporary files are left"
    );
    directory.write("file", "");
    let mut command = directory.command(binary());
    let command = command.args(["schema", "--path"]).env("XDG_DATA_HOME", directory.path().join("file"));
    Run::of(command).exits(3).says("cannot write the schema to a file");
}

#[test]
fn backends_shows_a_table_and_its_reasons() {
    let directory = Directory::new();
    let run = directory.jobc(&["backends"]).exits(0);
    for name in ["dockerfile", "oci", "cgroup", "kubernetes", "openpai", "slurm"] {
        assert!(run.out.lines().any(|line| line.starts_with(name)), "{name} is not in\n{}", run.out);
    }
    let table: Value =
        serde_json::from_str(&directory.jobc(&["backends", "--format", "json"]).exits(0).out).unwrap();
    assert_eq!(table["backends"].as_array().unwrap().len(), 6);
    let features = table["features"].as_array().unwrap();
    assert!(features.len() > 20);
    for feature in features {
        for (backend, answer) in feature["backends"].as_object().unwrap() {
            let support = answer["support"].as_str().unwrap();
            assert!(["yes", "plan", "setting", "lossy", "no"].contains(&support), "{backend}: {support}");
            let reason = answer["why"].as_str().is_some_and(|why| !why.is_empty());
            assert_eq!(reason, matches!(support, "setting" | "lossy" | "no"), "{backend}: {feature}");
        }
    }
    let answer = |feature: &str, backend: &str| {
        let row = features.iter().find(|row| row["feature"] == feature).unwrap();
        row["backends"][backend]["support"].as_str().unwrap().to_owned()
    };
    // What a build refuses without a setting, and accepts with one.
    for feature in ["data: https://", "data: git+https://", "data and outputs: s3://"] {
        assert_eq!((&*answer(feature, "kubernetes"), &*answer(feature, "openpai")), ("setting", "setting"));
    }
    assert_eq!(answer("gang: required", "kubernetes"), "setting");
    // With the `gpus` of the target.
    assert_eq!(answer("gpu: all", "oci"), "setting");
    assert_eq!(answer("gang: {min}", "kubernetes"), "no");
    directory.write("targets.yaml", "version: 1\ntargets:\n  lab: {backends: [kubernetes]}\n");
    let lab: Value = serde_json::from_str(
        &directory.jobc(&["backends", "--target", "lab", "--format", "json"]).exits(0).out,
    )
    .unwrap();
    assert_eq!(lab["backends"].as_array().unwrap().len(), 1);
    directory.jobc(&["backends", "--target", "lap"]).exits(1).says("did you mean `lab`?");
}

#[test]
fn each_starter_builds() {
    let directory = Directory::new();
    let list = directory.jobc(&["init", "--list"]).exits(0).out;
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let templates: Vec<&str> = names.iter().copied().filter(|name| name.starts_with("std/")).collect();
    let known: Vec<String> = examples().iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(
        {
            let mut sorted = names.clone();
            sorted.sort_unstable();
            sorted
        },
        {
            let mut all: Vec<&str> = known.iter().map(String::as_str).chain(templates).collect();
            all.sort_unstable();
            all
        },
        "every example and every template is a starter"
    );
    for name in names {
        let run = directory.jobc(&["init", name, "--example", name]).exits(0);
        let next = match name {
            "local-image" => format!(
                "next: sh {name}/base.sh | jobc image import - --tag base:1, then jobc run {name}/job.yaml\n"
            ),
            "hello-cpu" => {
                format!("next: jobc run {name}/job.yaml\nit pulls `python:3.12-slim`; without a network")
            }
            _ if name.starts_with("local-") => format!("next: jobc run {name}/job.yaml\n"),
            _ if name.starts_with("std/") => {
                format!("for a cluster: edit {name}/targets.yaml, then jobc build {name}/job.yaml\n")
            }
            _ => format!("next: jobc build {name}/job."),
        };
        assert!(run.out.contains(&next), "{}", run.out);
        directory.jobc(&["check", name]).exits(0);
        let build = directory.jobc(&["build", name]).exits(0);
        assert!(!build.err.contains("warning["), "{name}: {}", build.err);
        for (path, bytes) in crate::directory::contents(&directory.path().join(name)) {
            let text = String::from_utf8(bytes).unwrap();
            assert!(!text.contains("$schema="), "{name}/{path} names a schema that is not there");
        }
    }
}

#[test]
fn std_lists_and_shows_the_templates() {
    let directory = Directory::new();
    let list = directory.jobc(&["std", "ls"]).exits(0).out;
    assert_eq!(list.lines().next(), Some("TEMPLATE           KIND  DESCRIPTION"));
    let names: Vec<&str> = list.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() >= 16 && names.contains(&"std/torchrun"), "{list}");
    let all = directory.jobc(&["std", "ls", "--format", "json"]).exits(0).out;
    let all: Vec<Value> = serde_json::from_str(&all).unwrap();
    assert_eq!(all.iter().map(|template| template["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
    for (name, template) in names.into_iter().zip(&all) {
        let page = directory.jobc(&["std", "show", name]).exits(0).out;
        assert!(page.contains(&format!("uses: {name}\n")) && page.contains("PARAMETER"), "{page}");
        let short = name.strip_prefix("std/").unwrap();
        assert_eq!(directory.jobc(&["std", "show", short]).exits(0).out, page);
        let source = directory.jobc(&["std", "show", short, "--source"]).exits(0).out;
        assert_eq!(template["source"], source);
        let one = directory.jobc(&["std", "show", name, "--format", "json"]).exits(0).out;
        assert_eq!(serde_json::from_str::<Value>(&one).unwrap(), *template);
        assert_eq!(template["schema"]["additionalProperties"], false);
    }
    directory
        .jobc(&["std", "show", "torhcrun"])
        .exits(2)
        .says("unknown template `torhcrun`; did you mean `std/torchrun`?");
    directory
        .jobc(&["std", "show", "std/\u{1b}x"])
        .exits(2)
        .says("unknown template `std/\\u{1b}x` (`jobc std ls` lists");
    directory.jobc(&["init", "x", "-e", "std/torhcrun"]).exits(2).says("did you mean `std/torchrun`?");
}

#[test]
fn init_does_not_overwrite_files_without_force() {
    let directory = Directory::with_job("mine");
    directory.jobc(&["init"]).exits(2).says("`job.yaml`").says("--force");
    assert_eq!(directory.read("job.yaml"), "mine");
    directory.jobc(&["init", "--force"]).exits(0);
    assert!(directory.read("job.yaml").contains("name: hello"));
    directory.jobc(&["init", "local-sweep"]).exits(2).says("`jobc init -e local-sweep`");
    directory.jobc(&["init", "./local-sweep"]).exits(0);
    let spaced = directory.jobc(&["init", "my dir", "-e", "local-tune"]).exits(0).out;
    assert!(
        spaced.contains("jobc run 'my dir/job.yaml'") || spaced.contains("jobc build 'my dir/job.yaml'"),
        "{spaced}"
    );
    directory.jobc(&["init", "x", "--example", "torchrun"]).exits(2).says("torchrun-4x8");
    assert!(!directory.path().join("x").exists());
}

#[test]
fn import_converts_an_openpai_job() {
    let directory = Directory::new();
    let job = "protocolVersion: 2\nname: Count\ntype: job\nprerequisites:\n  - {name: py, type: dockerimage, uri: 'python:3.12-slim'}\n\
        taskRoles:\n  main:\n    dockerImage: py\n    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}\n    commands: [python count.py]\n";
    directory.write("pai.yaml", job);
    let printed = directory.jobc(&["import", "pai.yaml"]).exits(0).says("becomes `count`").out;
    assert!(printed.contains("run: python count.py"), "{printed}");
    directory.jobc(&["import", "pai.yaml", "-o", "job.yaml"]).exits(0).says("jobc build job.yaml");
    assert_eq!(directory.read("job.yaml"), printed);
    directory.jobc(&["check", "job.yaml"]).exits(0);
    directory.jobc(&["import", "pai.yaml", "-o", "job.yaml"]).exits(2).says("--force");
    directory.jobc(&["import", "job.yaml"]).exits(2).says("already");
    directory.write("broken.yaml", &job.replace("dockerImage: py", "dockerImage: python"));
    directory.jobc(&["import", "broken.yaml", "-o", "other.yaml"]).exits(1).says("J0527");
    assert!(!directory.path().join("other.yaml").exists());
    directory.jobc(&["import", "absent.yaml"]).exits(2).says("no such file");
}

#[test]
fn completions_parse() {
    let directory = Directory::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = directory.jobc(&["completions", shell]).exits(0).out;
        assert!(script.contains("JOBC_COMPLETE"), "{shell}: {script}");
        directory.write("script", &script);
        let check: &[&str] = match shell {
            "bash" => &["bash", "-n", "script"],
            "zsh" => &["zsh", "-n", "script"],
            "fish" => &["fish", "--no-execute", "script"],
            _ => continue,
        };
        if shell != "bash" && command(shell).arg("--version").output().is_err() {
            jobc_test_skip::skip(shell);
            continue;
        }
        let run = Run::of(directory.command(check[0]).args(&check[1..])).exits(0);
        assert_eq!(run.err, "");
    }
    // Bash offers what the program answers.
    let line = "PATH=$(dirname \"$JOBC\"):$PATH; source <(jobc completions bash); COMP_LINE='jobc expl'; COMP_POINT=9; \
                COMP_WORDS=(jobc expl); COMP_CWORD=1; _jobc jobc expl jobc; echo ${COMPREPLY[@]}";
    assert_eq!(directory.bash(line).exits(0).out, "explain\n");
}

#[test]
fn a_field_is_explained() {
    let directory = Directory::new();
    let memory = directory.jobc(&["explain", "memory"]).exits(0).out;
    assert!(memory.starts_with("# `roles.<role>.resources.memory` of the job file\n"), "{memory}");
    assert!(memory.contains("32GiB"), "{memory}");
    let share = directory.jobc(&["explain", "gpu.share"]).exits(0).out;
    assert!(share.starts_with("# `roles.<role>.resources.gpu.share` of the job file\n"), "{share}");
    directory.jobc(&["explain", "memry"]).exits(2).says("did you mean `memory`?");
    // As it is written in a file, with the name of a role or without.
    let retry = directory.jobc(&["explain", "roles.train.retry"]).exits(0).out;
    assert!(
        retry.starts_with("# `roles.<role>.retry` of the job file\n\nType: map.\n\nRetries after a failure"),
        "{retry}"
    );
    assert!(
        retry.contains("```yaml\nretry:\n  max: 3\n```\n") && retry.contains("* `max` (required): "),
        "{retry}"
    );
    assert_eq!(directory.jobc(&["explain", "roles.<role>.retry"]).exits(0).out, retry);
    assert_eq!(directory.jobc(&["explain", "roles.retry"]).exits(0).out, retry);
    let namespace = directory.jobc(&["explain", "targets.lab.kubernetes.namespace"]).exits(0).out;
    assert!(
        namespace.starts_with("# `targets.<target>.kubernetes.namespace` of the targets file\n"),
        "{namespace}"
    );
    directory
        .jobc(&["explain", "roles.train.retry.maxx"])
        .exits(2)
        .says("unknown code or field `roles.train.retry.maxx`; did you mean `roles.train.retry.max`?");
    let json = directory.jobc(&["explain", "--format", "json", "roles.train.retry"]).exits(0).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json[0]["field"], &json[0]["page"]), (&"roles.<role>.retry".into(), &retry.into()));
}

#[test]
fn several_files_and_directories_are_checked() {
    let directory = Directory::with_job(HELLO);
    let wrong = HELLO.replace("version: 1", "version: 2");
    for path in ["jobs/a/job.yaml", "jobs/b/deep/job.yml", "jobs/out/hello/job.yaml"] {
        directory.write(path, &wrong);
    }
    let run = directory.jobc(&["check", "--format", "short", "job.yaml", "jobs"]).exits(1);
    let files: Vec<&str> = run.err.lines().filter_map(|line| line.split(':').next()).collect();
    assert!(files.contains(&"jobs/a/job.yaml") && files.contains(&"jobs/b/deep/job.yml"), "{}", run.err);
    assert!(!run.err.contains("jobs/out"), "{}", run.err);
    directory.write("empty/readme", "");
    directory.jobc(&["check", "empty"]).exits(2).says("`empty` is a directory without a job.yaml");
}

#[test]
fn an_absent_file_does_not_hide_the_plan() {
    let directory = Directory::with_job(
        "version: 1\nname: x\nroles: {a: {image: \"busybox:1.36\", run: \"true\", files: {/a: {from: absent}}}}\n",
    );
    let run = directory.jobc(&["plan"]).exits(1).says("`absent` cannot be read");
    assert!(run.out.starts_with("x for "), "{}", run.out);
    let built = directory.jobc(&["build"]).exits(1).says("`absent` cannot be read");
    assert_eq!(built.out, "");
    directory.jobc(&["check", "--target", "openpai"]).exits(1).says("OpenPAI requires a number of CPUs");
}

#[test]
fn plan_docker_prints_a_complete_command() {
    let directory = Directory::with_job(
        "version: 1\nname: x\nroles: {a: {image: \"busybox:1.36\", run: [echo, hi], env: {A: \"1 2\"}, resources: {gpu: 1, memory: 1GiB, ports: {p: {port: 80, publish: host}}}}}\n",
    );
    let out = directory.jobc(&["plan", "--docker"]).exits(0).out;
    for part in [
        "--gpus device=0",
        "--memory 1073741824",
        "-p 80:80",
        "-e 'A=1 2'",
        "busybox:1.36 echo hi",
        "free GPUs",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
}

#[test]
fn a_summary_names_the_instances_that_a_command_asks_for() {
    let directory = Directory::with_job(
        "version: 1\nname: two\nimage: busybox:1.36\nroles:\n  \
         a: {instances: 2, run: serve, resources: {ports: {web: auto}}}\n  \
         b: {run: \"get ${{ hosts.a[1] }}:${{ ports.a.web[1] }}\"}\n",
    );
    let summary = directory.jobc(&["plan", "--target", "local"]).exits(0).out;
    let command = "get ${{ hosts.a[1] }}:${{ ports.a.web[1] }}";
    assert!(summary.contains(command), "{summary}");
}

#[test]
fn a_plan_shows_the_defaults() {
    let directory = Directory::with_job(HELLO);
    let summary = directory.jobc(&["plan"]).exits(0).out;
    assert!(summary.starts_with("hello for local\n"), "{summary}");
    let several = directory.jobc(&["plan", "--target", "openpai", "--target", "kubernetes"]).exits(0).out;
    assert!(several.starts_with("hello for openpai, kubernetes\n"), "{several}");
    for word in ["role ", "instances", "images\n", "order ", "hello"] {
        assert!(summary.contains(word), "{word}: {summary}");
    }
    let yaml = directory.jobc(&["plan", "--format", "yaml"]).exits(0).out;
    let json: Value =
        serde_json::from_str(&directory.jobc(&["plan", "--format", "json"]).exits(0).out).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["jobs"].as_array().unwrap().len(), 1);
    assert!(yaml.starts_with("version: 1\njobs:\n"), "{yaml}");
    let built = Directory::with_job(HELLO);
    built.jobc(&["build", "--target", "local"]).exits(0);
    let target = built.jobc(&["plan", "--target", "local", "--format", "json"]).exits(0).out;
    assert_eq!(target, built.read("out/hello/local/plan.json"), "what is printed is what is written");
}

#[test]
fn a_plan_shows_gpu_hours_and_cost() {
    let of = |more: &str, words: &[&str]| {
        let directory = Directory::with_job(&format!(
            "version: 1\nname: x\nimage: host\n{more}roles: {{a: {{instances: 2, run: \"true\", resources: {{cpu: 10, gpu: {{count: 4, model: H100}}}}}}}}\n"
        ));
        directory.write(
            "targets.yaml",
            "version: 1\ntargets: {here: {backends: [oci], prices: {currency: EUR, gpu: {H100: 2.4}, cpu: 0.04}}}\n",
        );
        let summary = directory.jobc(&["plan"]).exits(0).out;
        for word in words {
            assert!(summary.contains(word), "{word}: {summary}");
        }
    };
    of(
        "",
        &["gpu hours  8 in an hour, without a limit\n", "cost       20.00 EUR in an hour, without a limit\n"],
    );
    of(
        "timeout: 12h\n",
        &["gpu hours  at most 96, 8 in an hour\n", "cost       at most 240.00 EUR, 20.00 EUR in an hour\n"],
    );
    of(
        "timeout: 12h\nbudget: {gpu_hours: 50, energy: 10kWh}\n",
        &[
            "gpu hours  at most 50 by the budget, 96 by the time limits\n",
            "budget     ends the job at 50 GPU-hours or 10kWh\n",
        ],
    );
    of(
        "budget: {cost: 100}\n",
        &[
            "budget     ends the job at 100 EUR\n",
            "cost       at most 100.00 EUR by the budget, 20.00 EUR in an hour\n",
        ],
    );
}

#[test]
fn a_plan_shows_what_acts_on_the_job() {
    let directory = Directory::with_job(
        "version: 1
name: x
image: host
secrets: {slack: {env: SLACK}}
outputs: {saved: {source: ./saved, mount: /saved}}
preflight: [gpus, {disk: 100GiB}, {run: ./check.sh}]
stall: {after: 10m, action: restart}
idle: {gpu: 5, after: 1h, action: stop}
preemption: {grace: 2m, exit_codes: [85], checkpoint: saved}
notify:
  - {on: [failed, stalled], webhook: slack}
  - {on: [succeeded], run: 'logger \"$JOBC_NOTICE\"'}
roles:
  train:
    run: 'true'
    resources: {gpu: 1, memory: 64GiB}
    retry: {max: 2, on: [out of memory, node], memory: 1.5, max_memory: 128GiB}
  eval: {run: 'true', retry: {max: 1, on_exit_codes: [3]}, stall: {after: 1m}}
",
    );
    let summary = directory.jobc(&["plan"]).exits(0).out;
    for line in [
        "preflight   gpus, disk 100GiB, `./check.sh` in train; disk 100GiB, `./check.sh` in eval",
        "retry       the task 2 times, on out of memory, node, with up to 128GiB of memory in train; the task once, on exit code 3 in eval",
        "stall       restart after 10m in train; report after 1m in eval",
        "idle        stop after 1h with GPUs below 5%",
        "preemption  SIGTERM, 2m to leave, resumed on exit code 85, from saved",
        "notify      failed, stalled: webhook slack; succeeded: `logger \"$JOBC_NOTICE\"`",
    ] {
        assert!(summary.contains(&format!("{line}\n")), "{line}: {summary}");
    }
}

#[test]
fn skill_prints_and_installs_its_page() {
    let directory = Directory::new();
    let page = directory.jobc(&["skill"]).exits(0).out;
    assert!(page.starts_with("---\nname: jobc\ndescription: "), "{page}");
    let path = "skills/jobc/SKILL.md";
    assert_eq!(directory.jobc(&["skill", "--install", "skills"]).exits(0).out, format!("wrote {path}\n"));
    assert_eq!(directory.read(path), page);
    // Replacing a page by the same one loses nothing; replacing another one does.
    directory.jobc(&["skill", "--install", "skills"]).exits(0);
    directory.write(path, "of another version");
    directory.jobc(&["skill", "--install", "skills"]).exits(2).says("use `--force`");
    directory.jobc(&["skill", "--install", "skills", "--force"]).exits(0);
    assert_eq!(directory.read(path), page);
    directory.write("file", "");
    directory.jobc(&["skill", "--install", "file"]).exits(3).says("cannot write `file/jobc/SKILL.md`");
}

#[test]
fn the_job_of_the_skill_is_valid_and_short() {
    let directory = Directory::new();
    let page = directory.jobc(&["skill"]).exits(0).out;
    let blocks: Vec<&str> =
        page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let [job, targets] = blocks[..] else { panic!("a job and a targets file: {blocks:?}") };
    assert!(job.lines().count() <= 40, "{job}");
    directory.write("job.yaml", job);
    directory.write("targets.yaml", targets);
    directory.write("requirements.txt", "numpy==2.1.0\n");
    directory.write("train.py", "");
    directory.jobc(&["check", "--deny-warnings"]).exits(0);
    for command in page.split("`jobc ").skip(1).filter_map(|rest| rest.split(['`', ' ']).next()) {
        directory.jobc(&[command, "--help"]).exits(0);
    }
}
