//! Lints over whole jobs: text in, findings out, through every pass before this one.

use std::fmt::Write as _;

use jobc_schema::Targets;
use jobc_schema::plan::TargetPlan;

use super::{blocks, whole};
use crate::check::{check, check_document};
use crate::diagnostic::{Code, Diagnostic, DocumentId, Sink, codes};
use crate::expand::{Overrides, expand};
use crate::files::MemoryFiles;
use crate::lock::Lock;
use crate::parse::parse;
use crate::source::{Source, Sources};
use crate::template::{expand_templates, show_uses};
use crate::{resolve, validate};

/// The targets a job is checked for unless a test brings its own: one local, one cluster.
pub(super) const TARGETS: &str = "\
version: 1
targets:
  local: {backends: [dockerfile, oci, cgroup]}
  lab: {backends: [kubernetes]}
";

/// All findings about a job on its way to the plan, and whether there was one.
pub(super) fn run(job: &str, targets: &str) -> (Sources, Vec<Diagnostic>, bool) {
    let mut sources = Sources::new();
    let mut sink = Sink::new();
    let id = sources.add(Source::new("job.yaml", job));
    let targets_id = sources.add(Source::new("targets.yaml", targets));
    let targets_document = parse(&sources, targets_id, &mut sink).expect("the test's targets are YAML");
    let places: Targets =
        validate::targets(&targets_document, &mut sink).expect("the test's targets are sound");
    let files = MemoryFiles::default().with("main.py", "").with("Dockerfile", "FROM scratch\n");
    let beside = MemoryFiles::default().with("single.json", r#"{"distributed_type": "NO"}"#);
    let mut planned = false;
    let document = parse(&sources, id, &mut sink)
        .and_then(|document| expand_templates(document, &mut sources, &files, &Lock::default(), &mut sink));
    let sound = document.as_ref().is_some_and(|document| validate::validate(document, &mut sink));
    if let Some(document) = document.as_ref().filter(|_| sound) {
        check_document(document, &beside, &mut sink);
        for variant in expand(document, &sources, &Overrides::default(), &mut sink) {
            let Some(job) = validate::job(&variant.document, &mut sink) else { continue };
            for (name, settings) in &places.targets {
                let target = TargetPlan { name: name.clone(), built_in: false, settings: settings.clone() };
                let Some(plan) =
                    resolve::resolve(&job, &variant, &target, &files, &Lock::default(), &mut sink)
                else {
                    continue;
                };
                planned = true;
                check(&job, &plan, &beside, &mut sink);
            }
        }
    }
    if let Some(document) = &document {
        sink.locate(DocumentId::Job, document, &sources);
    }
    sink.locate(DocumentId::Targets, &targets_document, &sources);
    show_uses(&sources, &mut sink);
    (sources, sink.finish(), planned)
}

/// Each job and its findings.
fn report(jobs: &[&str], targets: &str) -> String {
    let mut out = String::new();
    for job in jobs {
        let job = whole(job);
        let (sources, diagnostics, _) = run(&job, targets);
        out.push_str(job.split_once("name: example\n").unwrap().1);
        for diagnostic in diagnostics {
            let severity = format!("{:?}", diagnostic.severity).to_lowercase();
            let _ = writeln!(out, "{severity} {}: {}", diagnostic.code, diagnostic.message);
            for label in &diagnostic.labels {
                let span = label.place.span().expect("places are located");
                let source = sources.get(span.source);
                let at = source.line_column(span.start);
                let text = sources.slice(span).lines().next().unwrap_or_default();
                let _ =
                    writeln!(out, "  {}:{}:{} `{text}` {}", source.path(), at.line, at.column, label.text);
            }
            for note in diagnostic.notes {
                let _ = writeln!(out, "  = {note}");
            }
        }
        out.push('\n');
    }
    out
}

/// Code and message of each finding, one a line.
pub(super) fn list(found: &[Diagnostic]) -> String {
    found.iter().fold(String::new(), |mut out, d| {
        let _ = writeln!(out, "    {:?} {}: {}", d.severity, d.code, d.message);
        out
    })
}

#[test]
fn the_examples_of_the_pages_hold() {
    let mut wrong = String::new();
    for (code, _) in Code::all().filter(|(code, _)| code.as_str().starts_with("J03")) {
        let example = blocks(code.page(), "Example");
        let targets = example.get(1).map_or(TARGETS, |targets| targets);
        let (_, found, _) = run(&whole(example[0]), targets);
        // Apart from the finding it shows, an example is a good job.
        if found.is_empty() || found.iter().any(|d| d.code != code) {
            let _ = write!(wrong, "{code}: the example gets\n{}", list(&found));
        }
        let (_, found, planned) = run(&whole(blocks(code.page(), "Write instead")[0]), targets);
        if !planned || !found.is_empty() {
            let _ = write!(wrong, "{code}: what to write instead gets\n{}", list(&found));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn cards_and_toolkits() {
    let gpu = |image: &str, gpu: &str| {
        format!(
            "image: {image}\nroles:\n  r: {{resources: {{cpu: 1, memory: 8GiB, shm: 1GiB, gpu: {gpu}}}, run: ./r}}\n"
        )
    };
    let cuda = "nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04";
    let new = "nvidia/cuda:13.0.1-cudnn-runtime-ubuntu24.04";
    let old = "nvidia/cuda:11.4.3-cudnn8-runtime-ubuntu20.04";
    insta::assert_snapshot!(report(
        &[
            &gpu(cuda, "{count: 1, cuda: \"12.6\"}"),
            &gpu(cuda, "{count: 1, cuda: \"12.4\", driver: \"470\"}"),
            &gpu(cuda, "{count: 1, driver: \"535.54\"}"),
            &gpu(new, "{count: 1, model: [V100, T4]}"),
            &gpu(new, "{count: 1, model: [V100, P100], cuda: \"13.0\"}"),
            &gpu(new, "{count: 1, compute_capability: \"7.0\"}"),
            &gpu(old, "{count: 1, compute_capability: \"9.0\", model: H100}"),
            &gpu(cuda, "{count: 1, model: [a10O, A100-60GB, Tesla-V100-SXM2-32GB]}"),
            &gpu(cuda, "{count: 1, model: A100-40GB, memory: 41GiB}"),
            &gpu(cuda, "{count: 1, model: T4, memory: 24GiB}"),
            &gpu(cuda, "{count: 1, model: [T4, A10], compute_capability: \"9.0\"}"),
            &gpu(cuda, "{count: 1, model: RTX-4090, memory: 24GiB}"),
            &gpu(cuda, "{count: 1, share: {profile: 1g.11gb}}"),
            &gpu(cuda, "{count: 1, share: {profile: seven}}"),
            &gpu(cuda, "{count: 1, model: L4, share: {profile: 1g.10gb}}"),
            &gpu(cuda, "{count: 1, model: H100, share: {profile: 1g.5gb}}"),
            &gpu(cuda, "{count: 8, model: H100-80GB, share: {profile: 1g.10gb, same_card: true}}"),
            &gpu("rocm/pytorch:rocm6.2_ubuntu22.04_py3.10_pytorch_release_2.3.0", "1"),
        ],
        "version: 1\ntargets: {lab: {backends: [kubernetes]}}\n",
    ));
}

#[test]
fn what_a_policy_forbids() {
    let targets = "version: 1\ntargets:\n  lab:\n    backends: [kubernetes]\n    policy: {require_digest: true, allowed_registries: [registry.example.com/ml/, docker.io/library], max_gpus: 8, max_time: 2d}\n";
    let digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    insta::assert_snapshot!(report(
        &[
            &format!("image: busybox:1.36@{digest}\ntimeout: 2d\nroles: {{a: {{run: x}}}}\n"),
            &format!(
                "images:\n  a: registry.example.com/mlx/a:1@{digest}\n  b: {{from: registry.example.com/ml/b:1, apt: [git], copy: [{{image: other/c:2, from: /c, to: /c}}]}}\nroles:\n  a: {{image: {{use: a}}, timeout: 3d, run: x, resources: {{cpu: 1, memory: 8GiB, gpu: 4}}}}\n  b: {{image: {{use: b}}, instances: 2, run: x, resources: {{cpu: 1, memory: 8GiB, gpu: 4}}}}\n"
            ),
            &format!(
                "image: busybox:1.36@{digest}\ntimeout: 49h\nroles:\n  a: {{run: x, resources: {{cpu: 1, memory: 8GiB, gpu: 8}}}}\n  b: {{needs: {{a: succeeded}}, run: x, resources: {{cpu: 1, memory: 8GiB, gpu: 8}}}}\n"
            ),
        ],
        targets
    ));
}

#[test]
fn what_a_target_has() {
    let gpu = |gpu: &str| {
        format!(
            "image: nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04\nroles:\n  r: {{resources: {{cpu: 1, memory: 8GiB, shm: 1GiB, gpu: {gpu}}}, run: ./r}}\n"
        )
    };
    insta::assert_snapshot!(report(
        &[
            &gpu("{count: 1, model: H100}"),
            &gpu("{count: 1, model: [h100, a100]}"),
            &gpu("{count: 1, model: A100-80GB}"),
            &gpu("{count: 1, model: Newcard-9}"),
            &gpu("{count: 1, memory: 80GiB}"),
            &gpu("{count: 1, compute_capability: \"9.0\"}"),
            &gpu("{count: 1, driver: \"550\"}"),
        ],
        "\
version: 1
targets:
  lab:
    backends: [kubernetes]
    kubernetes: {gpu: {models: [A100-40GB, V100-16GB], driver: \"470.82.01\"}}
",
    ));
    let card = gpu("{count: 1, model: Newcard-9}");
    let targets =
        "version: 1\ntargets: {lab: {backends: [kubernetes], kubernetes: {gpu: {models: [NEWCARD-9]}}}}\n";
    assert_eq!(run(&whole(&card), targets).1, []);
}

#[test]
fn launchers_ports_and_scripts() {
    let job = |roles: &str| format!("image: pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime\nroles:\n{roles}");
    let gpu = "resources: {cpu: 8, memory: 64GiB, shm: 8GiB, gpu: 2}";
    insta::assert_snapshot!(report(
        &[
            &job(&format!(
                "  t: {{instances: 2, {gpu}, run: torchrun x.py}}\n  u: {{{gpu}, run: torchrun x.py}}\ndistributed: {{framework: torchrun, roles: [u]}}\n"
            )),
            &job(&format!(
                "  t: {{instances: 2, {gpu}, run: torchrun x.py}}\ndistributed: {{framework: jax, roles: [t]}}\n"
            )),
            &job(&format!(
                "  t: {{instances: 2, {gpu}, run: torchrun --nnodes $N x.py}}\n  u: {{instances: 2, {gpu}, run: torchrun --standalone x.py}}\n"
            )),
            &job(&format!(
                "  t:\n    instances: 2\n    {gpu}\n    env: {{PET_NNODES: 2, RANK: 1}}\n    run: torchrun x.py\n"
            )),
            &job(&format!(
                "  t: {{instances: 3, {gpu}, run: torchrun --nnodes=1:2 --nproc_per_node 4 x.py}}\n"
            )),
            &job(&format!(
                "  t: {{instances: 3, {gpu}, completion: {{min_succeeded: 1, min_failed: none}}, retry: {{max: 1, scope: task}}, run: torchrun x.py}}\ndistributed: {{framework: torchrun, roles: [t]}}\n"
            )),
            "image: python:3.12-slim\nnetwork: host\nroles:\n  a: {instances: 2, resources: {ports: {http: {port: 80}, x: auto}}, run: ./a}\n  b: {resources: {ports: {y: 80}}, run: ./b}\n  c: {needs: [b], resources: {ports: {z: 80}}, run: ./c}\n  d: {needs: {c: started}, resources: {ports: {z: 80}}, run: ./c}\n",
            "image: python:3.12-slim\nroles:\n  a: {instances: 2, parallel: 1, resources: {ports: {http: 80}}, run: ./a}\n",
            "image: python:3.12-slim\nroles:\n  a: {run: \"nginx -g 'daemon off;'\"}\n  b: {needs: [a], run: [bash, -c, \"sudo ./b && ./c &\"]}\n  c: {shell: [python, -c], run: \"sudo &\"}\n",
            "image: python:3.12-slim\ntimeout: 1h\nroles:\n  a: {run: ./a}\n  b: {run: sleep infinity}\n",
            "image: python:3.12-slim\nroles:\n  a: {run: sleep infinity}\n  b: {run: tail -f /dev/null}\n",
            "image: {from: python:3.12-slim, steps: [{python: {packages: [numpy, torch==2.4.0, 'x @ https://example.com/x', ./local, -U]}}, {copy: {image: busybox, from: /a, to: /b}}]}\nroles:\n  a: {resources: {cpu: 4000, memory: 1MiB, pids: 2, gpu: 1}, timeout: 5s, run: ./a}\n",
            "image: localhost:5000/x@sha256:0000000000000000000000000000000000000000000000000000000000000000\nroles:\n  a: {image: localhost:5000/y, run: ./a}\n  b: {image: {from: alpine}, run: ./b}\n  c: {run: ./c}\n",
        ],
        TARGETS,
    ));
}

#[test]
fn built_in_templates_make_good_jobs() {
    let jobs = [
        ("torchrun", "uses: std/torchrun\nwith: {script: main.py --epochs 90, nodes: 4, gpus: 8}\n"),
        ("ddp", "uses: std/ddp\nwith: {script: main.py, nodes: 2}\n"),
        (
            "tensorboard",
            "outputs: {logs: {source: ./logs, mount: /output}}\nroles:\n  main: {image: \"python:3.12-slim\", completion: {min_succeeded: all}, run: python main.py}\n  board: {uses: std/tensorboard}\n",
        ),
        (
            "elastic",
            "uses: std/elastic\nwith: {script: main.py, nodes: 4, min_nodes: 2, max_nodes: 4, gpus: 8}\n",
        ),
        ("tensorflow-ps", "uses: std/tensorflow-ps\nwith: {script: main.py, workers: 3, servers: 2}\n"),
        ("horovod", "uses: std/horovod\nwith: {script: main.py, nodes: 2, gpus: 4}\n"),
        ("mpi", "uses: std/mpi\nwith: {program: ./solve, processes: 4}\n"),
        ("deepspeed", "uses: std/deepspeed\nwith: {script: train.py --deepspeed ds.json}\n"),
        ("jax", "uses: std/jax\nwith: {script: main.py, nodes: 4, gpus: 8}\n"),
        ("ray", "uses: std/ray\nwith: {script: tune.py, workers: 4}\n"),
        (
            "sweep",
            "uses: std/sweep\nwith: {script: \"train.py --lr ${{ matrix.lr }}\"}\nmatrix: {lr: [0.1, 0.01]}\n",
        ),
        (
            "data-prepare",
            "data: {images: {source: \"job:\", mount: /data, writable: true}}\nroles:\n  prepare: {uses: std/data-prepare, with: {command: python /prepare.py}}\n  train: {image: \"python:3.12-slim\", needs: [prepare], run: python main.py}\n",
        ),
        ("nccl-test", "uses: std/nccl-test\n"),
        (
            "code-server",
            "secrets: {code: {env: CODE_PASSWORD}}\nroles:\n  code: {uses: std/code-server, with: {password: \"${{ secrets.code }}\"}}\n",
        ),
        (
            "vllm-serve",
            "outputs: {weights: {source: ./weights, mount: /cache}}\nroles:\n  serve: {uses: std/vllm-serve, with: {model: Qwen/Qwen2.5-7B-Instruct}}\n",
        ),
        (
            "jupyter",
            "secrets: {token: {env: JUPYTER_TOKEN}}\nroles:\n  lab: {uses: std/jupyter, with: {token: \"${{ secrets.token }}\"}}\n",
        ),
    ];
    for (name, _) in crate::template::built_in() {
        assert!(jobs.iter().any(|(tested, _)| *tested == name), "std/{name} has no test");
    }
    for (name, job) in jobs {
        let (_, found, planned) = run(&whole(job), TARGETS);
        assert!(planned && found.is_empty(), "std/{name}:\n{}", list(&found));
    }
}

#[test]
fn a_mistake_in_a_template_shows_both_places() {
    let job = "uses: std/torchrun\nwith: {script: \"main.py ${{ params.nobody }}\", nodes: 2}\n";
    let own = "uses: std/torchrun\nwith: {script: main.py}\nroles: {train: {retry: {max: 1, scope: task}, resources: {gpu: 2}, env: {RANK: 1}}}\ndistributed: {framework: ddp}\n";
    insta::assert_snapshot!(report(
        &[job, own, "uses: std/torchrun\nwith: {script: main.py, shm: 64GiB}\n"],
        TARGETS
    ));
}

#[test]
fn slices_that_fit_on_no_card() {
    let gpu = |gpu: &str| {
        format!(
            "image: nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04\nroles:\n  r: {{resources: {{cpu: 1, memory: 8GiB, shm: 1GiB, gpu: {gpu}}}, run: ./r}}\n"
        )
    };
    let targets = |cards: &str, provider: &str| {
        format!(
            "version: 1\ntargets:\n  lab:\n    backends: [kubernetes]\n    gpus: {{cards: [{cards}]}}\n    kubernetes: {{gpu: {{provider: {provider}}}}}\n"
        )
    };
    let one = "{model: RTX-3090, count: 1, memory: 24GiB}";
    insta::assert_snapshot!(report(
        &[
            &gpu("{count: 9, share: {memory: 3000MiB}}"),
            &gpu("{count: 9, share: {memory: 3000MiB, same_card: true}}"),
            &gpu("{count: 1, share: {memory: 25GiB}}"),
            &gpu("{count: 3, share: {memory: 1GiB, cores: 40, same_card: true}}"),
        ],
        &targets(one, "hami"),
    ));
    let is_reported = |gpu_text: &str, cards: &str, provider: &str| {
        let (_, findings, _) = run(&whole(&gpu(gpu_text)), &targets(cards, provider));
        findings.iter().any(|finding| finding.code == codes::TARGET_MODELS)
    };
    let two = "{model: RTX-3090, count: 2, memory: 24GiB}";
    assert!(!is_reported("{count: 8, share: {memory: 3000MiB, same_card: true}}", one, "hami"));
    assert!(!is_reported("{count: 2, share: {memory: 24GiB}}", two, "hami"));
    assert!(!is_reported("{count: 9, share: {memory: 3000MiB}}", "{model: RTX-3090}", "hami"));
    assert!(!is_reported(
        "{count: 1, share: {memory: 80GiB}}",
        "{model: A100-40GB}, {model: A100-80GB}",
        "hami"
    ));
    for provider in
        ["hami", "volcano-vgpu", "volcano-gpushare", "kai", "aliyun-gpushare", "gpu-manager", "orion"]
    {
        assert!(
            is_reported("{count: 1, share: {memory: 81GiB}}", "{model: A100-80GB}", provider),
            "{provider}"
        );
    }
}
