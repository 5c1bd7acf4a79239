//! Image blocks as the plan has them, and the files they become.

use std::fmt::Write as _;

use camino::Utf8PathBuf;
use jobc_schema::plan::JobPlan;
use serde_json::{Value, json};

use crate::backend::{Backend, Content, Context, File, Losses};
use crate::diagnostic::Sink;
use crate::files::MemoryFiles;

use super::DockerfileBackend;

/// A minimal job with these images.
pub(super) fn job(images: &Value) -> JobPlan {
    let mut plan = json!({
        "name": "resnet50", "description": "ResNet-50 on ImageNet,\ndata parallel",
        "target": {"name": "local", "settings": {"backends": ["dockerfile"]}},
        "images": {}, "roles": [], "stages": [], "gang": "auto", "network": "auto",
        "totals": {"instances": 0, "cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "gpu_slices": 0}
    });
    plan["images"] = images.clone();
    serde_json::from_value(plan).unwrap()
}

fn build(mut source: Value) -> JobPlan {
    source["kind"] = "build".into();
    job(
        &json!({"main": {"source": source, "reference": "resnet50-main:0123456789ab", "declared_at": "/image"}}),
    )
}

fn lower(job: &JobPlan, files: &MemoryFiles) -> (Vec<File>, Sink) {
    let context = Context {
        files,
        to_job: Utf8PathBuf::from("../../.."),
        gpu_injection: None,
        losses: Losses::Refuse,
        plugins: None,
        all_jobs: &[],
    };
    let mut sink = Sink::new();
    (DockerfileBackend.lower(job, &context, &mut sink), sink)
}

fn text(files: &[File], name: &str) -> String {
    let file = files.iter().find(|file| file.path.as_str() == name).unwrap_or_else(|| panic!("no {name}"));
    match &file.content {
        Content::Dockerfile(dockerfile) => dockerfile.to_string(),
        Content::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    }
}

/// The Dockerfile without its head, below the findings.
fn check(source: Value) -> String {
    check_with(
        source,
        &MemoryFiles::default().with("requirements.txt", "numpy==2.1.0\n").with("src/a.py", ""),
    )
}

fn check_with(source: Value, files: &MemoryFiles) -> String {
    let written = crate::snapshot::json(&source);
    let job = build(source);
    let (made, sink) = lower(&job, files);
    let dockerfile = text(&made, "main/Dockerfile");
    if !sink.has_errors() {
        let parsed = parse_dockerfile::parse(&dockerfile).unwrap();
        let Content::Dockerfile(content) = &made[0].content else { panic!("not a Dockerfile") };
        assert_eq!(parsed.instructions.len(), content.instructions.len());
        assert_eq!(
            made[0].origins.len(),
            content.instructions.len(),
            "every instruction tells where it is from"
        );
    }
    let body = dockerfile.split_once("\n\n").map_or("", |(_, body)| body);
    let findings: Vec<String> =
        sink.diagnostics().iter().map(|d| format!("{} {}\n  {:?}\n", d.code, d.message, d.notes)).collect();
    format!("{written}\n----\n{}----\n{body}", findings.concat())
}

#[test]
fn the_example_of_the_language() {
    insta::assert_snapshot!(check(json!({
        "from": "nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04",
        "args": {"PYTHON_VERSION": "3.11"},
        "steps": [
            {"env": {"OMP_NUM_THREADS": "8"}},
            {"apt": ["git", "openssh-client"]},
            {"python": {"version": "3.11", "packages": ["torch==2.4.0"], "requirements": "requirements.txt"}},
            {"copy": {"from": ".", "to": "/workspace"}},
            {"run": "python -c 'import torch'"}
        ],
        "workdir": "/workspace"
    })));
}

#[test]
fn python_is_installed_as_requested() {
    let cases: Vec<String> = [
        ("python:3.11-slim", None),
        ("python:3.11-slim", Some("3.11.9")),
        ("python:3.10-slim", Some("3.11")),
        ("debian:12-slim", Some("3.11")),
        ("debian:13", None),
        ("ubuntu:24.04", Some("3.11.9")),
        ("team/own:1", Some("3.11")),
        ("pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime", Some("3.11")),
        ("condaforge/miniforge3:24.9.2-0", Some("3.11")),
        ("mambaorg/micromamba:2.0", Some("3.11")),
        ("alpine:3.20", None),
        ("scratch", None),
    ]
    .into_iter()
    .map(|(from, version)| {
        let mut python = json!({"packages": ["jax[cuda12]==0.4.35", "einops"]});
        if let Some(version) = version {
            python["version"] = version.into();
        }
        let text = check(json!({"from": from, "steps": [{"python": python}]}));
        let (_, text) = text.split_once("----\n").unwrap();
        format!("==== {from}, version {}\n{text}", version.unwrap_or("not asked"))
    })
    .collect();
    insta::assert_snapshot!(cases.join("\n"));
}

#[test]
fn users_are_created() {
    let cases: Vec<String> = [
        ("debian:12-slim", "app"),
        ("debian:12-slim", "app:staff"),
        ("debian:12-slim", "app:2000"),
        ("debian:12-slim", "1000"),
        ("debian:12-slim", "1000:1000"),
        ("python:3.12-alpine", "app:app"),
        ("debian:12-slim", "root"),
        ("quay.io/jupyter/scipy-notebook:2024-10-07", "jovyan"),
        ("mambaorg/micromamba:2.0", "app"),
    ]
    .into_iter()
    .map(|(from, user)| {
        let text = check(json!({
            "from": from, "user": user, "workdir": "/workspace",
            "steps": [{"copy": {"from": "src", "to": "src"}}, {"run": "ls src | sort"}]
        }));
        let (_, text) = text.split_once("----\n").unwrap();
        format!("==== {from}, user {user}\n{text}")
    })
    .collect();
    insta::assert_snapshot!(cases.join("\n"));
}

#[test]
fn steps_in_an_order_of_their_own() {
    insta::assert_snapshot!(check(json!({
        "from": "ubuntu",
        "steps": [
            {"run": "echo one"},
            {"apt": ["git=1:2.34.1-1ubuntu1"]},
            {"env": {"A": "1", "B": "${A}2", "PATH": "/opt/bin:$PATH"}},
            {"workdir": "/build"},
            {"copy": {"from": "/bin/busybox", "to": "bin/", "image": "busybox", "mode": "0755"}},
            {"user": "1000:1000"},
            {"apt": ["curl"]},
            {"run": "set -x\ncd /tmp\nmake \"$A\"\n"},
            {"run": "echo a"},
            {"run": "echo b | cat"}
        ],
        "workdir": "/work",
        "secrets": ["pypi"],
        "labels": {"team": "vision $1", "org.opencontainers.image.title": "mine"},
        "entrypoint": ["tini", "--"]
    })));
}

#[test]
fn roles_that_agree_name_the_stop_signal_of_their_image() {
    let written = |signals: &[Option<&str>]| {
        let source = json!({"kind": "build", "from": "debian:12"});
        let roles = signals.iter().enumerate().map(|(number, signal)| {
            let role = signal.map_or(json!({}), |signal| json!({"stop_signal": signal}));
            (format!("r{number}"), role)
        });
        let plan = crate::backends::fixture::job(&json!({
            "images": {"main": {"source": source, "reference": "demo-main:0123456789ab", "declared_at": "/image"}},
            "roles": roles.collect::<serde_json::Map<_, _>>(),
        }));
        let (files, _) = lower(&plan, &MemoryFiles::default());
        text(&files, "main/Dockerfile").contains("\nSTOPSIGNAL SIGUSR1\n")
    };
    assert!(written(&[Some("SIGUSR1")]) && written(&[Some("SIGUSR1"), Some("SIGUSR1")]));
    assert!(!written(&[Some("SIGUSR1"), None]) && !written(&[Some("SIGINT"), Some("SIGUSR1")]));
}

#[test]
fn conda() {
    let files = MemoryFiles::default().with("env/environment.yml", "name: x\n");
    let conda = json!({"packages": ["pytorch=2.4.0", "numpy>=2"], "channels": ["pytorch", "conda-forge"], "file": "env/environment.yml"});
    let cases: Vec<String> = ["continuumio/miniconda3:24.7.1-0", "mambaorg/micromamba:2.0", "debian:12"]
        .into_iter()
        .map(|from| check_with(json!({"from": from, "steps": [{"conda": conda}]}), &files))
        .collect();
    insta::assert_snapshot!(cases.join("\n"));
}

#[test]
fn requirements_and_what_they_name() {
    let files = MemoryFiles::default()
        .with(
            "pip/requirements.txt",
            "-r base.txt\n--constraint=../limits.txt # a reason\nnumpy\n-r gone.txt\n",
        )
        .with("pip/base.txt", "-r requirements.txt\nscipy\n")
        .with("limits.txt", "numpy<3\n");
    insta::assert_snapshot!(check_with(
        json!({"from": "python:3.11", "steps": [{"python": {
            "requirements": ["pip/requirements.txt", "../above.txt"], "packages": ["a>=1"],
            "index": "https://pypi.example.com/simple?a=1&b=2", "extra_index": ["https://wheels.example.com/cu124"]
        }}]}),
        &files,
    ));
}

#[test]
fn invalid_images_are_reported() {
    insta::assert_snapshot!(check(json!({
        "from": "nvidia/cuda:12.6.3-devel-ubi9",
        "args": {"A": "two\nlines"},
        "steps": [
            {"env": {"B": "two\nlines"}},
            {"apt": ["git"]},
            {"copy": {"from": "srcs", "to": "/src"}},
            {"copy": {"from": "/etc/passwd", "to": "/src"}},
            {"copy": {"from": "a/../../b", "to": "/src"}}
        ],
        "labels": {"c": "two\nlines"}
    })));
}

#[test]
fn ignored_files_are_left_out_of_the_context() {
    let mut plan = build(json!({
        "from": "python:3.11",
        "steps": [
            {"copy": {"from": ".", "to": "/w"}}, {"copy": {"from": ".env.production", "to": "/w/.env"}},
            {"copy": {"from": "results/seed.bin", "to": "/w"}}
        ]
    }));
    plan.volumes = serde_json::from_value(json!({
        "results": {"kind": "output", "source": {"kind": "path", "path": "./results"}},
        "odd": {"kind": "output", "source": {"kind": "path", "path": "a*b"}},
        "here": {"kind": "output", "source": {"kind": "path", "path": "."}},
        "data": {"kind": "data", "source": {"kind": "path", "path": "data"}}
    }))
    .unwrap();
    let files = MemoryFiles::default()
        .with(".dockerignore", "*.tmp\r\n!keep.tmp")
        .with(".env.production", "")
        .with("results/seed.bin", "");
    let (made, sink) = lower(&plan, &files);
    assert!(!sink.has_errors(), "{:?}", sink.diagnostics());
    insta::assert_snapshot!(text(&made, "main/Dockerfile.dockerignore"));
}

#[test]
fn the_commands_that_build() {
    let mut plan = job(&json!({
        "main": {
            "source": {"kind": "build", "from": "python:3.11", "platform": "linux/arm64", "secrets": ["pypi", "netrc", "wandb", "stored"]},
            "reference": "resnet50-main:0123456789ab", "declared_at": "/image"
        },
        "own": {
            "source": {"kind": "dockerfile", "path": "docker/My Dockerfile", "context": ".", "target": "runtime", "args": {"A": "it's 1"}},
            "reference": "resnet50-own:0123456789ab", "declared_at": "/images/own"
        },
        "below": {
            "source": {"kind": "dockerfile", "path": "docker/Dockerfile", "context": "docker"},
            "reference": "resnet50-below:0123456789ab", "declared_at": "/images/below"
        },
        "ready": {"source": {"kind": "reference"}, "reference": "python:3.11", "declared_at": "/images/ready"}
    }));
    plan.target.settings.registry = Some("registry.example.com/ml/".into());
    plan.secrets = serde_json::from_value(json!({
        "pypi": {"env": "PYPI_TOKEN"}, "netrc": {"file": "secrets/netrc"},
        "wandb": {"file": "~/.config/wandb/key"}, "stored": {"store": {"name": "a", "key": "b"}}
    }))
    .unwrap();
    let (made, sink) = lower(&plan, &MemoryFiles::default());
    let mut shown = String::new();
    for diagnostic in sink.diagnostics() {
        let _ = writeln!(shown, "{} {}", diagnostic.code, diagnostic.message);
    }
    for file in &made {
        let _ = writeln!(shown, "==== {} {:o}", file.path, file.mode);
        if !file.path.as_str().ends_with("ignore") {
            shown += &text(&made, file.path.as_str());
        }
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn jobs_without_built_images_need_no_dockerfile() {
    let plan = job(
        &json!({"main": {"source": {"kind": "reference"}, "reference": "python:3.11", "declared_at": "/image"}}),
    );
    assert!(!DockerfileBackend.applies(&plan));
    assert!(lower(&plan, &MemoryFiles::default()).0.is_empty());
}
