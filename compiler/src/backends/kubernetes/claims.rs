//! Claims of dynamic resource allocation: `ResourceClaimTemplate`s, in the version of the API that a release serves.
//!
//! Shapes: `resource.k8s.io` of kubernetes/api; `v1` and `v1beta2` put a request's fields under `exactly`, the versions
//! before have them in the request itself.

use jobc_schema::gpu::min_mib;
use jobc_schema::plan::{GpuPlan, JobPlan, RolePlan};
use serde_json::{Map, Value, json};

use crate::stdlib::providers::{self, ClaimForm, RequestForm};
use crate::stdlib::{Version, models};

use super::cluster::Cluster;
use super::gpu::{provider, short};
use super::metadata;
use super::object::Object;
use super::origins::Origins;
use super::quantity;
use super::release::{Release, Releases};

/// The name of the claim within a pod, and of its one request.
pub(super) const NAME: &str = "gpu";

/// The version of the claims' API that a release serves; nothing before the first whose claims have this shape.
pub(super) fn api_version(release: Release) -> Option<&'static str> {
    let table = &providers::table().claims;
    let serves = |first: &str| {
        let (major, minor) = first.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?) <= release)
    };
    table.iter().rfind(|(first, _)| serves(first) == Some(true)).map(|(_, version)| version.as_str())
}

/// The first release whose claims have this shape.
pub(super) fn first_release() -> &'static str {
    providers::table().claims.keys().next().map_or("", String::as_str)
}

/// The name of the object that a role's pods take their claim from.
pub(super) fn object_name(job: &JobPlan, role: &RolePlan) -> String {
    format!("{}-{}-gpu", job.name, role.name)
}

/// Whether all pods of a role share one claim, and thus one card.
pub(super) fn is_shared(job: &JobPlan, role: &RolePlan) -> bool {
    role.resources
        .gpu
        .as_ref()
        .and_then(|gpu| provider(job, gpu.vendor).ok()?.way(gpu.share.as_ref()))
        .is_some_and(|way| way.shared_claim)
}

/// The claims of a job's roles.
pub(super) fn objects(cluster: &Cluster<'_>) -> Vec<Object> {
    let claims = cluster.job.roles.iter().filter_map(|role| {
        let gpu = role.gpus()?;
        let provider = provider(cluster.job, gpu.vendor).ok()?;
        let form = provider.claim.as_ref()?;
        let way = provider.way(gpu.share.as_ref())?;
        object(cluster, role, gpu, form, way)
    });
    claims.collect()
}

fn object(
    cluster: &Cluster<'_>,
    role: &RolePlan,
    gpu: &GpuPlan,
    form: &ClaimForm,
    way: &RequestForm,
) -> Option<Object> {
    let version = api_version(Releases::of(cluster.settings).kubernetes)?;
    let name = object_name(cluster.job, role);
    let metadata = serde_json::to_value(metadata::object(cluster, &name)).ok()?;
    let (kind, spec, at) = if way.shared_claim {
        ("ResourceClaim", claim(gpu, form, way, version), vec!["spec", "devices"])
    } else {
        let spec = json!({"spec": claim(gpu, form, way, version)});
        ("ResourceClaimTemplate", spec, vec!["spec", "spec", "devices"])
    };
    let value = json!({"apiVersion": format!("resource.k8s.io/{version}"), "kind": kind, "metadata": metadata, "spec": spec});
    let mut origins = Origins::default();
    origins.spec(at, &role.at().keys(["resources", "gpu"]));
    Some(Object { kind, name, value, origins: origins.into_list() })
}

/// The claim's own specification.
fn claim(gpu: &GpuPlan, form: &ClaimForm, way: &RequestForm, version: &str) -> Value {
    let profile = gpu.share.as_ref().and_then(|share| share.profile.as_deref());
    let class = form.classes.get(if profile.is_some() { "profile" } else { "whole" });
    let mut request = Map::new();
    request.insert("deviceClassName".to_owned(), json!(class));
    let selectors: Vec<Value> =
        selectors(gpu, form).into_iter().map(|text| json!({"cel": {"expression": text}})).collect();
    if !selectors.is_empty() {
        request.insert("selectors".to_owned(), Value::Array(selectors));
    }
    request.insert("allocationMode".to_owned(), json!("ExactCount"));
    request.insert("count".to_owned(), json!(gpu.count));
    let request = if matches!(version, "v1alpha3" | "v1beta1") {
        let mut named = Map::from_iter([("name".to_owned(), json!(NAME))]);
        named.append(&mut request);
        Value::Object(named)
    } else {
        json!({"name": NAME, "exactly": request})
    };
    let mut devices = json!({"requests": [request]});
    let same_card = gpu.count > 1 && gpu.share.as_ref().is_some_and(|share| share.same_card);
    if let (true, Some(attribute)) = (same_card, &form.same_card) {
        devices["constraints"] = json!([{"requests": [NAME], "matchAttribute": attribute}]);
    }
    if let Some(parameters) = sharing(gpu, form, way) {
        devices["config"] =
            json!([{"requests": [NAME], "opaque": {"driver": form.driver, "parameters": parameters}}]);
    }
    json!({"devices": devices})
}

/// How a claimed card is shared among those who share the claim.
fn sharing(gpu: &GpuPlan, form: &ClaimForm, way: &RequestForm) -> Option<Value> {
    let share = gpu.share.as_ref().filter(|_| way.shared_claim)?;
    let mps = form.mps.as_ref()?;
    let mut config = Map::new();
    if let Some(cores) = share.cores_percent {
        config.insert("defaultActiveThreadPercentage".to_owned(), json!(cores));
    }
    if let Some(bytes) = share.memory_bytes {
        config.insert("defaultPinnedDeviceMemoryLimit".to_owned(), json!(quantity::bytes(bytes).0));
    }
    Some(json!({
        "apiVersion": mps.api_version,
        "kind": mps.kind,
        "sharing": {"strategy": "MPS", "mpsConfig": config}
    }))
}

/// The requirements of a device, as CEL expressions.
fn selectors(gpu: &GpuPlan, form: &ClaimForm) -> Vec<String> {
    let mut found = vec![];
    let attribute = |name: &str| format!("device.attributes['{}'].{name}", form.driver);
    let share = gpu.share.as_ref();
    if let (Some(profile), Some(name)) = (share.and_then(|share| share.profile.as_deref()), &form.profile) {
        found.push(format!("{} == '{}'", attribute(name), quoted(profile)));
    }
    if let Some(product) = form.product.as_ref().filter(|_| !gpu.models.is_empty()) {
        let each: Vec<String> = gpu.models.iter().map(|model| of_model(model, product, form)).collect();
        found.push(each.join(" || "));
    }
    if let (Some(bytes), Some(name)) = (gpu.memory_bytes, &form.memory) {
        found.push(at_least_memory(bytes, name, form));
    }
    let versions = [
        (&gpu.compute_capability, &form.compute_capability),
        (&gpu.driver, &form.driver_version),
        (&gpu.cuda, &form.cuda),
    ];
    for (wanted, name) in versions {
        if let (Some(wanted), Some(name)) = (wanted, name) {
            found.push(format!("{}.compareTo(semver('{}')) >= 0", attribute(name), semantic(wanted)));
        }
    }
    found
}

/// One model: the word in the product name, and the memory if the job names a size.
fn of_model(model: &str, product: &str, form: &ClaimForm) -> String {
    let known = models::find(model);
    let word = short(model).to_lowercase();
    let word: String = word
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_string() } else { "[ -]".to_owned() })
        .collect();
    let named = format!(
        "device.attributes['{}'].{product}.lowerAscii().matches('(^|[^a-z0-9]){word}([^a-z0-9]|$)')",
        form.driver
    );
    match (known.and_then(|known| known.memory_gb), &form.memory) {
        (Some(gigabytes), Some(name)) => {
            format!("({named} && {})", at_least_memory(gigabytes << 30, name, form))
        }
        _ => named,
    }
}

fn at_least_memory(bytes: u64, name: &str, form: &ClaimForm) -> String {
    let least = min_mib(bytes);
    format!("device.capacity['{}'].{name}.compareTo(quantity('{least}Mi')) >= 0", form.driver)
}

/// A version with three numbers and no zero in front, as semantic versions are written.
fn semantic(version: &str) -> String {
    let mut numbers: Vec<u64> =
        Version::parse(version).map_or(vec![], |v| v.to_string().split('.').flat_map(str::parse).collect());
    numbers.resize(3, 0);
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}

/// Text inside CEL quotes.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_its_api() {
        let check = |release, version| assert_eq!(api_version(release), version, "{release:?}");
        check((1, 30), None);
        check((1, 31), Some("v1alpha3"));
        check((1, 32), Some("v1beta1"));
        check((1, 33), Some("v1beta2"));
        check((1, 34), Some("v1"));
        check((1, 40), Some("v1"));
    }

    #[test]
    fn versions_are_semantic() {
        assert_eq!(semantic("535.104.05"), "535.104.5");
        assert_eq!(semantic("8.0"), "8.0.0");
        assert_eq!(semantic("550"), "550.0.0");
    }
}
