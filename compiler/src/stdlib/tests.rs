//! The built-in files are read completely, agree with each other, and answer as their sources do.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Version, arch, cuda, images, load, mig, models, nvidia, providers};
use crate::diagnostic::Sink;
use crate::parse::parse;
use crate::source::{Source, Sources};

/// Reads a file, writes it back, and compares with what the file holds.
fn check_whole<T: Serialize + DeserializeOwned>(path: &str, text: &str) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(path, text));
    let mut sink = Sink::new();
    let json = parse(&sources, id, &mut sink).unwrap().to_json();
    assert_eq!(sink.diagnostics(), [], "{path}");
    let typed: T = load(path, text);
    assert_eq!(serde_json::to_value(typed).unwrap(), json, "{path}");
}

#[test]
fn every_file_is_read_whole() {
    check_whole::<cuda::Cuda>("cuda.yaml", cuda::TEXT);
    check_whole::<arch::Arches>("arch.yaml", arch::TEXT);
    check_whole::<mig::Mig>("mig.yaml", mig::TEXT);
    check_whole::<models::Models>("models.yaml", models::TEXT);
    check_whole::<nvidia::Nvidia>("nvidia.yaml", nvidia::TEXT);
    check_whole::<providers::Providers>("providers.yaml", providers::TEXT);
    check_whole::<images::Images>("images.yaml", images::TEXT);
}

#[test]
fn a_toolkit_has_its_driver() {
    let check = |toolkit: &str, driver: Option<&str>, oldest: Option<&str>| {
        assert_eq!(cuda::driver_for(toolkit), driver, "{toolkit}");
        assert_eq!(cuda::oldest_driver(toolkit), oldest, "{toolkit}");
    };
    check("12.4.1", Some("550.54.15"), Some("525"));
    check("12.4", Some("550.54.14"), Some("525"));
    check("12.4.9", Some("550.54.15"), Some("525"));
    check("12.1.1", Some("530.30.02"), Some("525"));
    check("11.8.0", Some("520.61.05"), Some("450.80.02"));
    check("10.2.89", Some("440.33"), Some("440.33"));
    check("13.4.1", None, Some("580"));
    check("12.99", None, Some("525"));
    check("99.0", None, None);
    check("twelve", None, None);
}

#[test]
fn an_architecture_has_its_toolkits() {
    let ada = arch::cuda_range("8.9").unwrap();
    assert_eq!((ada.min, ada.max), ("11.8", None));
    let volta = arch::cuda_range("7.0").unwrap();
    let after = |text| volta.is_after(&Version::parse(text).unwrap());
    assert!(!after("12.9.1"));
    assert!(after("13.0.0"));
    assert!(volta.is_before(&Version::parse("8.0.61").unwrap()));
    assert_eq!(arch::cuda_range("8.8"), None);
}

#[test]
fn names_of_cards_are_found() {
    let check = |text: &str, name: Option<&str>, memory: Option<u64>| {
        let found = models::find(text);
        assert_eq!(found.map(|f| f.model.name.as_str()), name, "{text}");
        assert_eq!(found.and_then(|f| f.memory_gb), memory, "{text}");
    };
    check("A100", Some("A100"), None);
    check("a100-80gb", Some("A100"), Some(80));
    check("A100-80G", Some("A100"), Some(80));
    check("NVIDIA-A100-SXM4-80GB", Some("A100"), Some(80));
    check("NVIDIA A100 80GB PCIe", Some("A100"), Some(80));
    check("Tesla V100-SXM2-16GB", Some("V100"), Some(16));
    check("RTX 4090", Some("RTX-40xx"), None);
    check("GeForce RTX 2080 Ti", Some("RTX-20xx"), None);
    check("rtx-a6000", Some("RTX-A6000"), None);
    check("L40S", Some("L40S"), None);
    check("A1000", None, None);
    check("RTX", None, None);
    check("", None, None);
    assert!(models::find("A100").unwrap().has_mig());
    assert_eq!(models::find("A100").unwrap().most_memory_gb(), Some(80));
    assert_eq!(models::find("A100-60GB").unwrap().most_memory_gb(), None);
    assert!(!models::find("T4").unwrap().has_mig());
}

#[test]
fn the_tables_agree() {
    for model in models::all() {
        let arch = arch::find(&model.cc).unwrap_or_else(|| panic!("{} has an architecture", model.name));
        assert_eq!(arch.family, model.family, "{}", model.name);
        assert!(model.variants.is_sorted_by_key(|v| v.memory_gb), "{}", model.name);
        for table in model.variants.iter().filter_map(|v| v.mig.as_deref()) {
            assert!(mig::profiles(table).is_some(), "{table}");
        }
    }
    for product in arch::all().iter().flat_map(|a| a.products.iter().flatten().map(move |p| (a, p))) {
        let model = models::find(product.1).unwrap_or_else(|| panic!("{} is a model", product.1));
        assert_eq!(model.model.cc, product.0.cc, "{}", product.1);
    }
    for name in mig::names() {
        assert!(mig::is_profile(name), "{name}");
    }
    for provider in providers::all() {
        assert_eq!(providers::find(&provider.name).unwrap().name, provider.name);
        for excluded in provider.excludes.iter().filter(|e| !e.contains("same-gpu")) {
            assert!(providers::find(excluded).is_some(), "{} excludes {excluded}", provider.name);
        }
    }
}

#[test]
fn profiles_have_a_form_and_cards() {
    for (text, is) in [
        ("1g.10gb", true),
        ("1c.3g.20gb", true),
        ("1g.10gb+me", true),
        ("1g.24gb+me.all,gfx", true),
        ("1g", false),
        ("1g.10", false),
        ("10gb", false),
        ("g.10gb", false),
        ("1g.10gb+", false),
        ("1g.10gb.me", false),
    ] {
        assert_eq!(mig::is_profile(text), is, "{text}");
    }
    assert_eq!(mig::cards_with("1g.5gb").collect::<Vec<_>>(), ["A100-40GB"]);
    assert_eq!(mig::cards_with("1c.3g.20gb").collect::<Vec<_>>(), ["A100-40GB"]);
    assert_eq!(mig::kubernetes_resource("1g.10gb+me"), "nvidia.com/mig-1g.10gb.me");
}

#[test]
fn a_tag_tells_about_its_image() {
    let check = |reference: &str, cuda: Option<&str>, gpu: bool, python: Option<&str>, os: Option<&str>| {
        let facts = images::facts(reference).unwrap_or_else(|| panic!("{reference} is known"));
        let told = (facts.cuda.as_deref(), facts.gpu, facts.python.as_deref(), facts.os.as_deref());
        assert_eq!(told, (cuda, gpu, python, os), "{reference}");
    };
    let ubuntu = Some("ubuntu22.04");
    check("nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04", Some("12.4.1"), true, None, ubuntu);
    check("nvidia/cuda:11.8.0-cudnn8-devel-ubuntu22.04", Some("11.8.0"), true, None, ubuntu);
    check("mirror.example.com/nvidia/cuda:12.4.1-base-ubi8", Some("12.4.1"), true, None, Some("ubi8"));
    check("pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime", Some("12.4"), true, None, None);
    check("nvcr.io/nvidia/pytorch:25.12-py3", Some("13.1.0"), true, None, None);
    check("nvcr.io/nvidia/pytorch:24.01-py3", None, true, None, None);
    check("tensorflow/tensorflow:2.16.1-gpu-jupyter", None, true, None, None);
    check("tensorflow/tensorflow:2.16.1", None, false, None, None);
    check("tensorflow/tensorflow:latest", None, false, None, None);
    let rocm = "rocm/pytorch:rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.10.0";
    check(rocm, None, true, Some("3.12"), Some("ubuntu24.04"));
    check("python:3.12-slim", None, false, Some("3.12"), None);
    check("python:3.12-slim-bookworm", None, false, Some("3.12"), None);
    check("python:3.12-alpine3.20", None, false, Some("3.12"), None);
    check("docker.io/library/python:3.12", None, false, Some("3.12"), None);
    check("ubuntu:24.04@sha256:00", None, false, None, Some("ubuntu24.04"));
    for seen in images::seen() {
        assert!(images::facts(&seen).is_some(), "{seen} is not of its form");
    }
    for unknown in [
        "someone/python:3.12",
        "example.com/team/python:3.12",
        "nvidia/cuda",
        "nvidia/cuda:latest",
        "pytorch/pytorch:latest",
        "localhost:5000/train",
        "",
        "::",
    ] {
        assert_eq!(images::facts(unknown), None, "{unknown}");
    }
}
