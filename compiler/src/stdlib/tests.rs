//! The built-in files are read completely, are consistent, and agree with their sources.

use jobc_schema::gpu::{DriverCapability, Vendor};
use serde::Serialize;

use super::{Version, arch, cuda, images, mig, models, nvidia, providers, systems};
use crate::diagnostic::Sink;
use crate::parse::parse;
use crate::source::{Source, Sources};

/// Compares a table with its file: everything in it is read, and nothing differently.
fn check_whole<T: Serialize>(path: &str, text: &str, table: &T) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(path, text));
    let mut sink = Sink::new();
    let json = parse(&sources, id, &mut sink).unwrap().to_json();
    assert_eq!(sink.diagnostics(), [], "{path}");
    assert_eq!(serde_json::to_value(table).unwrap(), json, "{path}");
}

#[test]
fn every_file_is_read_completely() {
    check_whole("gpu/cuda.yaml", include_str!("../../../stdlib/gpu/cuda.yaml"), &*cuda::CUDA);
    check_whole("gpu/arch.yaml", include_str!("../../../stdlib/gpu/arch.yaml"), &*arch::ARCHES);
    check_whole("gpu/mig.yaml", include_str!("../../../stdlib/gpu/mig.yaml"), &*mig::MIG);
    check_whole("gpu/models.yaml", include_str!("../../../stdlib/gpu/models.yaml"), &*models::MODELS);
    check_whole("gpu/nvidia.yaml", include_str!("../../../stdlib/gpu/nvidia.yaml"), &*nvidia::NVIDIA);
    check_whole(
        "gpu/providers.yaml",
        include_str!("../../../stdlib/gpu/providers.yaml"),
        &*providers::PROVIDERS,
    );
    check_whole("images.yaml", include_str!("../../../stdlib/images.yaml"), &*images::IMAGES);
    check_whole("systems.yaml", include_str!("../../../stdlib/systems.yaml"), &*systems::SYSTEMS);
}

#[test]
fn drivers_of_toolkits() {
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
fn toolkits_of_architectures() {
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
    assert_eq!(models::find("A100").unwrap().max_memory_gb(), Some(80));
    assert_eq!(models::find("A100-60GB").unwrap().max_memory_gb(), None);
    assert!(!models::find("T4").unwrap().has_mig());
}

#[test]
fn the_tables_are_consistent() {
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
}

#[test]
fn every_row_is_found_by_a_lookup() {
    for (toolkit, driver) in &cuda::table().cuda_driver_min {
        // A row without its last number is the first release of that minor version.
        assert_eq!(cuda::driver_for(toolkit), driver.as_deref(), "CUDA {toolkit}");
        if let Some(driver) = driver.as_deref().and_then(Version::parse) {
            let newest = cuda::newest(&driver).unwrap_or_else(|| panic!("driver {driver} runs no CUDA"));
            assert!(newest >= Version::parse(toolkit).unwrap().truncate(2), "driver {driver}: {newest}");
        }
    }
    for major in cuda::table().minor_version_compat_floor.keys() {
        assert!(cuda::floor_for(&format!("{major}.0")).is_some(), "CUDA {major}");
    }
    for arch in arch::all() {
        assert_eq!(arch::find(&arch.cc), Some(arch), "{} stands twice", arch.cc);
        if let Some(later) = &arch.renamed_to {
            assert!(arch::find(later).is_some(), "{} became {later}", arch.cc);
        }
    }
    for model in models::all() {
        assert_eq!(models::find(&model.name).map(|found| found.model), Some(model), "{}", model.name);
    }
    let cut: Vec<&str> =
        models::all().iter().flat_map(|m| &m.variants).filter_map(|v| v.mig.as_deref()).collect();
    for name in mig::names() {
        let cards: Vec<&str> = mig::cards_with(name).collect();
        assert!(cards.iter().all(|card| cut.contains(card)), "no model has the cards {cards:?}");
    }
    let table = nvidia::table();
    let known = |name: &String| serde_json::from_value::<DriverCapability>(name.clone().into()).is_ok();
    assert!(table.capabilities.keys().chain(&table.default_capabilities).all(known));
}

#[test]
fn providers_have_supported_values() {
    for (number, provider) in providers::all().iter().enumerate() {
        let name = &provider.name;
        for name in std::iter::once(name).chain(&provider.aliases) {
            assert_eq!(providers::find(name), Some(provider), "{name}");
        }
        for excluded in &provider.excludes {
            assert!(
                providers::find(excluded).is_some_and(|e| e.name == *excluded),
                "{name} excludes {excluded}"
            );
        }
        let ways = [&provider.whole, &provider.share, &provider.profile];
        let served = ways.iter().any(|way| way.is_some());
        assert_ne!(served, provider.unserved.is_some(), "{name}");
        for way in ways.into_iter().flatten() {
            assert!(!way.asks.is_empty() || provider.claim.is_some(), "{name} asks for nothing");
            assert!(
                way.needs.iter().all(|part| way.takes.contains(part)),
                "{name} needs what it cannot take"
            );
            for ask in &way.asks {
                let memory = ask.key.contains("{memory}") || ask.amount.contains("{memory}");
                assert_eq!(memory, ask.unit.is_some(), "{name}: {}", ask.key);
            }
        }
        for way in [&provider.share, &provider.profile].into_iter().flatten() {
            assert!(way.enforce.is_some(), "{name} does not say what keeps a slice");
        }
        let first = providers::all().iter().position(|other| other.vendor == provider.vendor);
        let own = providers::chosen(None, provider.vendor).map(|p| &p.name);
        assert!(first != Some(number) || own == Some(name), "{name} is its vendor's own");
    }
    assert!(Vendor::ALL.into_iter().all(|vendor| providers::chosen(None, vendor).is_some()));
}

/// The schema of targets has its own list of names, since it is generated without the table.
#[test]
fn the_schema_of_targets_names_all_providers() {
    let schema: serde_json::Value = serde_json::from_str(jobc_schema::TARGETS_SCHEMA).unwrap();
    let listed = schema["$defs"]["KubernetesGpu"]["properties"]["provider"]["examples"].as_array().unwrap();
    let listed: Vec<&str> = listed.iter().filter_map(serde_json::Value::as_str).collect();
    let served = providers::all().iter().filter(|provider| provider.unserved.is_none());
    assert_eq!(listed, served.map(|provider| provider.name.as_str()).collect::<Vec<_>>());
}

#[test]
fn profiles_have_the_format_and_cards() {
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
}

#[test]
fn facts_are_derived_from_a_tag() {
    let check = |reference: &str, cuda: Option<&str>, gpu: bool, python: Option<&str>, os: Option<&str>| {
        let facts = images::facts(reference).unwrap_or_else(|| panic!("{reference} is known"));
        let output = (facts.cuda.as_deref(), facts.gpu, facts.python.as_deref(), facts.os.as_deref());
        assert_eq!(output, (cuda, gpu, python, os), "{reference}");
    };
    let ubuntu = Some("ubuntu22.04");
    check("nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04", Some("12.4.1"), true, None, ubuntu);
    check("nvidia/cuda:11.8.0-cudnn8-devel-ubuntu22.04", Some("11.8.0"), true, None, ubuntu);
    check("mirror.example.com/nvidia/cuda:12.4.1-base-ubi8", Some("12.4.1"), true, None, Some("ubi8"));
    check("pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime", Some("12.4"), true, None, None);
    check("nvcr.io/nvidia/pytorch:25.12-py3", Some("13.1.0"), true, None, None);
    check("nvcr.io/nvidia/pytorch:24.01-py3", Some("12.3"), true, None, None);
    check("nvcr.io/nvidia/pytorch:99.01-py3", None, true, None, None);
    check("nvcr.io/nvidia/tensorflow:23.03-tf2-py3", Some("12.1"), true, None, None);
    check("tensorflow/tensorflow:2.16.1-gpu-jupyter", Some("12.3"), true, None, None);
    check("tensorflow/tensorflow:1.15.5-gpu-py3", Some("10.0"), true, None, None);
    check("tensorflow/tensorflow:2.4-gpu", Some("11.0"), true, None, None);
    check("tensorflow/tensorflow:9.9.9-gpu", None, true, None, None);
    check("nvidia/cuda:10.2-base", Some("10.2"), true, None, None);
    check("nvidia/cuda:10.0-cudnn7-devel", Some("10.0"), true, None, None);
    check("tensorflow/tensorflow:2.16.1", None, false, None, None);
    check("tensorflow/tensorflow:latest", None, false, None, None);
    let rocm = "rocm/pytorch:rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.10.0";
    check(rocm, None, true, Some("3.12"), Some("ubuntu24.04"));
    check("python:3.12-slim", None, false, Some("3.12"), None);
    check("python:3.12-slim-bookworm", None, false, Some("3.12"), None);
    check("python:3.12-alpine3.20", None, false, Some("3.12"), None);
    check("docker.io/library/python:3.12", None, false, Some("3.12"), None);
    check("ubuntu:24.04@sha256:00", None, false, None, Some("ubuntu24.04"));
    for (reference, flavour) in [
        ("nvidia/cuda:10.2-base", Some("base")),
        ("nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04", Some("devel")),
        ("pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime", Some("runtime")),
        ("python:3.12-slim", None),
    ] {
        assert_eq!(images::facts(reference).unwrap().flavour.as_deref(), flavour, "{reference}");
    }
    for seen in images::known_references() {
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
