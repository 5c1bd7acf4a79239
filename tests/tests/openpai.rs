//! Jobs of OpenPAI: each imports, compiles for every backend, and comes back as it was.
//!
//! The official files are read where the corpus lies beside the repository; the project's own samples, which hold
//! every field of the protocol, always are. The test says which it read.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::backend::Losses;
use jobc_compiler::diagnostic::{Severity, Sink};
use jobc_compiler::files::MemoryFiles;
use jobc_compiler::rewrite::{RewriteResult, rewrite};
use jobc_compiler::source::{Source, Sources};
use jobc_schema::plan::JobPlan;
use jobc_tests::compile::{Arguments, Case, Compilation};
use jobc_tests::disk::DiskFiles;
use jobc_tests::{entries, workspace};

/// What OpenPAI itself refuses: names that are no names, and prerequisites that are not there.
const INVALID: [&str; 3] = [
    "item_protocols__old_templates__couplet_dataset.yaml",
    "publish__old__couplet_dataset.yaml",
    "git_repo_test_job.yaml",
];

/// What is not YAML at all.
const NOT_YAML: [&str; 3] = [
    "publish__cifar10-single-mul-DDP-nccl.yaml",
    "publish__cifar10-single-mul-DDP-nccl-Apex-mixed.yaml",
    "publish__cifar10-single-node-gpus-cpu-DP.yaml",
];

/// The project's own files that ask for more than Kubernetes does by itself.
const SAMPLES: [&str; 2] = ["everything.yaml", "full.json"];

/// Places that provide the directories `dataDir` and `outputDir`, which no place does by itself.
const WITH_STORAGE: &str = "version: 1
default: [local, kubernetes, openpai]
targets:
  local: {backends: [dockerfile, oci, cgroup]}
  kubernetes:
    backends: [kubernetes]
    kubernetes: {storage: {data: {pvc: data}, output: {pvc: output}}}
  openpai:
    backends: [openpai]
    openpai: {storages: [{name: data, provides: data}, {name: output, provides: output}]}
";

/// Every job file: the corpus where it is there, and the project's own.
fn files() -> Vec<Utf8PathBuf> {
    let own = workspace().join("tests/openpai");
    let mut files: Vec<Utf8PathBuf> = ["v1", "v2"].iter().flat_map(|kind| entries(&own.join(kind))).collect();
    let samples = files.len();
    assert!(samples >= 4, "only {samples} samples");
    let corpus = workspace().join("../shared/corpus/openpai");
    if corpus.is_dir() {
        let directories = ["v1", "v2/marketplace", "v2/pai", "v2/runtime"];
        files.extend(directories.iter().flat_map(|directory| entries(&corpus.join(directory))));
        eprintln!(
            "openpai: {} official files and {samples} samples of the project's own",
            files.len() - samples
        );
    } else {
        eprintln!("openpai: the corpus is absent; {samples} samples of the project's own");
    }
    files
}

fn name(path: &Utf8Path) -> &str {
    path.file_name().expect("a file has a name")
}

fn valid() -> Vec<Utf8PathBuf> {
    let mut files = files();
    files.retain(|path| !INVALID.contains(&name(path)) && !NOT_YAML.contains(&name(path)));
    files
}

fn read(path: &Utf8Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn compile(name: &str, text: &str, target: &str) -> Compilation {
    let mounted = text.contains("\"dataDir\": \"/") || text.contains("\"outputDir\": \"/");
    let case = Case {
        job: Source::new(name, text),
        targets: mounted.then(|| Source::new("targets.yaml", WITH_STORAGE)),
        params: vec![],
        arguments: Arguments {
            targets: vec![target.to_owned()],
            // The samples hold what a cluster must be told how to do.
            losses: if target == "kubernetes" && SAMPLES.contains(&name) {
                Losses::Drop
            } else {
                Losses::Refuse
            },
            ..Arguments::default()
        },
        files: &DiskFiles("/nonexistent".into()),
    };
    case.compile()
}

/// The OpenPAI job among what was written.
fn exported(compiled: &Compilation) -> String {
    let file = compiled.outputs[0].artifacts.iter().find(|file| file.path == "openpai/job.yaml");
    String::from_utf8(file.expect("an OpenPAI job").bytes.clone()).expect("text")
}

/// A plan without what says where in a file things stood.
fn bare(plan: &JobPlan) -> serde_json::Value {
    let mut plan = serde_json::to_value(plan).expect("a plan is JSON");
    plan.sort_all_objects();
    plan
}

#[test]
fn every_valid_file_compiles_for_every_backend() {
    let mut failed = vec![];
    for path in valid() {
        let text = read(&path);
        for target in ["local", "kubernetes", "openpai"] {
            let compiled = compile(name(&path), &text, target);
            if compiled.count(Severity::Error) > 0 || compiled.outputs.is_empty() {
                failed.push(format!("{path} for {target}:\n{}", compiled.short()));
                continue;
            }
            let again = compile(name(&path), &text, target);
            let bytes = |compiled: &Compilation| compiled.outputs[0].artifacts.clone();
            assert!(bytes(&compiled) == bytes(&again), "{path} differs from run to run");
            for file in bytes(&compiled) {
                let text = String::from_utf8(file.bytes).expect("every artifact is text");
                // A secret's value is filled in by the cluster alone.
                let left = text.lines().find(|line| line.contains("<%") && !line.contains("<% $secrets."));
                assert_eq!(left, None, "{path}: {} holds a template", file.path);
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn every_valid_file_comes_back() {
    for path in valid() {
        let text = read(&path);
        let there = compile(name(&path), &text, "openpai");
        let written = exported(&there);
        let back = compile("job.yaml", &written, "openpai");
        assert_eq!(back.count(Severity::Error), 0, "{path}:\n{written}\n{}", back.short());
        // Directories, fixed ports and kinds of GPUs of protocol v1 have no words in v2.
        if !text.contains("\"dataDir\": \"/") && name(&path) != "full.json" {
            let plans = (bare(&there.outputs[0].job), bare(&back.outputs[0].job));
            assert_eq!(plans.0, plans.1, "{path}: the plan is another one");
            let (there, back) =
                (compile(name(&path), &text, "local"), compile("job.yaml", &written, "local"));
            let plans = (bare(&there.outputs[0].job), bare(&back.outputs[0].job));
            assert_eq!(plans.0, plans.1, "{path}: the plan of this host is another one");
        }
        assert_eq!(written, exported(&back), "{path}: the job is another one");
    }
}

#[test]
fn what_import_writes_is_the_same_job() {
    for path in valid() {
        let text = read(&path);
        let mut sources = Sources::new();
        let id = sources.add(Source::new(name(&path), text.as_str()));
        let mut sink = Sink::new();
        let (RewriteResult::Job(job, _), _) = rewrite(
            &mut sources,
            id,
            &MemoryFiles::default(),
            &jobc_compiler::import::Selection::default(),
            &mut sink,
        ) else {
            panic!("{path} is not rewritten: {:?}", sink.diagnostics());
        };
        // Comments are kept as they were.
        let holds_template =
            job.lines().any(|line| line.contains("<%") && !line.trim_start().starts_with('#'));
        assert!(!holds_template || text.contains("$secrets"), "{path}:\n{job}");
        let mounted = text.contains("\"dataDir\": \"/");
        for target in ["local", "openpai"].into_iter().filter(|target| *target == "local" || !mounted) {
            let (there, ours) = (compile(name(&path), &text, target), compile("job.yaml", &job, target));
            assert_eq!(ours.count(Severity::Error), 0, "{path}:\n{job}\n{}", ours.short());
            if target == "local" && !mounted {
                let plans = (bare(&there.outputs[0].job), bare(&ours.outputs[0].job));
                assert_eq!(plans.0, plans.1, "{path}: the plan is another one");
            }
        }
    }
}

/// What jobc wrote from a job file of its own is read back as that job.
#[test]
fn jobs_of_our_own_come_back() {
    for path in entries(&workspace().join("tests/openpai/own")) {
        let there = compile(name(&path), &read(&path), "openpai");
        assert_eq!(there.count(Severity::Error), 0, "{path}:\n{}", there.short());
        let written = exported(&there);
        let back = compile("pai.yaml", &written, "openpai");
        assert_eq!(back.count(Severity::Error), 0, "{path}:\n{written}\n{}", back.short());
        let plans = (bare(&there.outputs[0].job), bare(&back.outputs[0].job));
        assert_eq!(plans.0, plans.1, "{path}: the plan is another one:\n{written}");
        assert_eq!(written, exported(&back), "{path}: the job is another one");
    }
}

/// What does not read back as a job of ours still comes back as the same OpenPAI job.
#[test]
fn examples_come_back() {
    let mut tried = 0;
    for example in jobc_tests::examples() {
        let compiled =
            jobc_tests::compile::compile_directory(&jobc_tests::job_file(&example).expect("a job file"));
        for output in &compiled.outputs {
            let Some(file) = output.artifacts.iter().find(|file| file.path == "openpai/job.yaml") else {
                continue;
            };
            let written = String::from_utf8(file.bytes.clone()).expect("text");
            let back = compile("pai.yaml", &written, "openpai");
            assert_eq!(back.count(Severity::Error), 0, "{example}:\n{written}\n{}", back.short());
            assert_eq!(written, exported(&back), "{example}: the job is another one");
            tried += 1;
        }
    }
    assert!(tried >= 3, "only {tried} examples are for OpenPAI");
}

#[test]
fn what_openpai_refuses_fails_at_a_line() {
    let broken: BTreeSet<&str> = INVALID.iter().chain(&NOT_YAML).copied().collect();
    for path in files().into_iter().filter(|path| broken.contains(name(path))) {
        let compiled = compile(name(&path), &read(&path), "local");
        assert!(compiled.outputs.is_empty(), "{path} compiles");
        let short = compiled.short();
        let located = |line: &str| {
            line.contains(": error[") && line.split(':').nth(1).is_some_and(|n| n.parse::<u32>().is_ok())
        };
        assert!(short.lines().any(located), "{path}: no line is named:\n{short}");
    }
}

/// A file among what was written.
fn artifact(compiled: &Compilation, path: &str) -> String {
    let file = compiled.outputs[0].artifacts.iter().find(|file| file.path == path);
    let file = file.unwrap_or_else(|| panic!("{path} is not written"));
    String::from_utf8(file.bytes.clone()).expect("text")
}

/// The variables that OpenPAI's server and runtime set, with the values they would have on one host.
#[test]
fn tasks_find_the_variables_of_openpai() {
    let path = workspace().join("tests/openpai/v2/ssh.yaml");
    let local = compile("ssh.yaml", &read(&path), "local");
    let config: serde_json::Value =
        serde_json::from_str(&artifact(&local, "oci/node-1/config.json")).expect("JSON");
    let env: Vec<&str> =
        config["process"]["env"].as_array().expect("a list").iter().filter_map(|v| v.as_str()).collect();
    for (name, value) in [
        ("PAI_JOB_NAME", "jobc~ring_test"),
        ("PAI_TASK_ROLE_COUNT", "2"),
        ("PAI_TASK_ROLE_LIST", "Head,node"),
        ("PAI_TASK_ROLE_INSTANCES", "head:0,node:0,node:1"),
        ("PAI_TASK_ROLE_TASK_COUNT_node", "2"),
        ("PAI_TASKS_NUM", "3"),
        ("PAI_CURRENT_TASK_ROLE_NAME", "node"),
        ("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "1"),
        // gpu, cpu, memory, shared memory; 0 where the job asks for none, though it gets 512 MiB.
        ("PAI_RESOURCE_Head", "1,2,4096,0"),
        ("PAI_RESOURCE_node", "0,1,2048,1024"),
        ("PAI_MIN_SUCCEEDED_TASK_COUNT_Head", "1"),
        ("PAI_MIN_SUCCEEDED_TASK_COUNT_node", "-1"),
        ("PAI_HOST_IP_head_0", "127.0.0.1"),
        ("PAI_PORT_LIST_head_0_web_UI", "20000,20001"),
        ("PAI_VIRTUAL_CLUSTER", "default"),
    ] {
        assert!(env.contains(&format!("{name}={value}").as_str()), "no {name}={value} in {env:#?}");
    }
    let value =
        |name: &str| env.iter().find_map(|v| v.strip_prefix(&format!("{name}="))).expect(name).to_owned();
    let list = format!(
        "127.0.0.1:{},127.0.0.1:{}",
        value("PAI_PORT_LIST_node_0_http"),
        value("PAI_PORT_LIST_node_1_http")
    );
    assert_eq!(value("PAI_TASK_ROLE_node_HOST_LIST"), list);
    assert_eq!(value("PAI_CONTAINER_HOST_PORT"), value("PAI_PORT_LIST_node_1_http"));
    assert_eq!(value("PAI_CONTAINER_SSH_PORT"), value("PAI_PORT_LIST_node_1_ssh"));
}

#[test]
fn tasks_find_each_other_by_name() {
    let path = workspace().join("tests/openpai/v2/ssh.yaml");
    let local = compile("ssh.yaml", &read(&path), "local");
    insta::assert_snapshot!(artifact(&local, "oci/head-0/files/etc/hosts"), @r"
    127.0.0.1 localhost
    ::1 localhost
    127.0.0.1 head-0
    127.0.0.1 node-0
    127.0.0.1 node-1
    ");
    insta::assert_snapshot!(artifact(&local, "oci/head-0/files/etc/jobc/openpai/ssh_config"), @r"
    Host head-0
      HostName 127.0.0.1
      Port 20002
    Host node-0
      HostName 127.0.0.1
      Port 20004
    Host node-1
      HostName 127.0.0.1
      Port 20005
    Host *
      User root
      IdentityFile ~/.ssh/id_ed25519
      StrictHostKeyChecking no
      UserKnownHostsFile /dev/null
      LogLevel ERROR
    ");
    insta::assert_snapshot!(artifact(&local, "oci/head-0/files/etc/jobc/openpai/barrier"), @r"
    head-0
    node-0
    node-1
    ");
    let cluster = compile("ssh.yaml", &read(&path), "kubernetes");
    let jobset = artifact(&cluster, "kubernetes/02-jobset-ring-test.yaml");
    for part in ["name: HOSTALIASES", "mountPath: /etc/jobc/ssh", "optional: true"] {
        assert!(jobset.contains(part), "no `{part}`:\n{jobset}");
    }
    let names = artifact(&cluster, "kubernetes/01-configmap-ring-test-files.yaml");
    assert!(names.contains("node-1 ring-test-node-0-1.ring-test\n"), "{names}");
    assert!(!jobset.contains("mountPath: /etc/hosts"), "{jobset}");
}
