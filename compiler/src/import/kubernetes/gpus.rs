//! GPUs of a container: resources of device plugins and schedulers by the table of providers, and claims.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::document::{Entry, Node};
use crate::source::Span;
use crate::stdlib::providers::{Provider, RequestForm, Unit, all as providers};

use super::super::container::size;
use super::super::keyed::only;
use super::super::nodes::{json as node, string};
use super::super::values::{scalar, text_at};
use super::env;
use super::reader::{Pod, named};

/// What the amounts of a request say.
type Holes = BTreeMap<String, (String, Option<Unit>)>;

/// Classes of devices of drivers for dynamic resource allocation, with the provider that claims them.
const CLASSES: &[(&str, &str)] =
    &[("gpu.nvidia.com", "nvidia-dra"), ("gpu.amd.com", "amd-dra"), ("gpu.intel.com", "intel-dra")];

/// Reads resources other than CPUs and memory.
pub(super) fn read(pod: &mut Pod<'_, '_, '_>, devices: &[&Entry]) {
    let Some(first) = devices.first() else { return };
    let scheduler = text_at(pod.spec, "schedulerName").unwrap_or_default();
    let forms = |provider: &'static Provider| {
        [&provider.whole, &provider.profile, &provider.share]
            .into_iter()
            .flatten()
            .map(move |form| (provider, form))
    };
    let mut all: Vec<&'static Provider> =
        providers().iter().filter(|known| known.unserved.is_none()).collect();
    // A scheduler of its own is the provider's, where the resource has the same name for several.
    let is_of_scheduler = |known: &&Provider| {
        let own = known.pod.as_ref().and_then(|pod| pod.scheduler.as_deref());
        own.is_some_and(|own| own == scheduler)
    };
    all.sort_by_key(|known| !is_of_scheduler(known));
    let request_of =
        all.into_iter().flat_map(forms).find_map(|(provider, form)| Some((provider, holes(form, devices)?)));
    let Some((provider, holes)) = request_of else {
        let is_known = |device: &&Entry| {
            providers()
                .iter()
                .flat_map(forms)
                .any(|(_, form)| form.asks.iter().any(|ask| matched(&ask.key, &device.key).is_some()))
        };
        if devices.iter().all(&is_known) {
            let last = devices.last().map_or(first.key_span, |device| device.key_span);
            return pod.role.draft.refuse(
                last,
                "no provider of GPUs has these amounts of them",
                "write `gpu: {count: 1, share: {memory: 8GiB, cores: 50}}` in a job file, and the provider in a targets file",
            );
        }
        if let [device] = devices
            && let Some(count) = super::facts::number_of(&device.value)
            && ["gpu", "npu", "accel"].iter().any(|word| device.key.contains(word))
        {
            let vendor = if device.key.contains("intel") { "intel" } else { "nvidia" };
            let gpu =
                if vendor == "nvidia" { json!(count) } else { json!({"count": count, "vendor": vendor}) };
            let part = device.key_span;
            let path = ["kubernetes", "gpu", "resource"];
            pod.role.draft.need_of_target(&path, part, string(part, &device.key));
            pod.role.field(&["resources", "gpu"], part, node(part, &gpu));
            return pod.role.draft.changed(
                part,
                format!("`{}` is taken for GPUs under a name of the cluster's own", device.key),
                "`kubernetes: {gpu: {resource: NAME}}` of a target has the name; elsewhere they are GPUs of the vendor",
            );
        }
        for device in devices.iter().filter(|device| !is_known(device)) {
            let message = format!("`{}` is not requested: jobc does not know this resource", device.key);
            pod.role.draft.changed(
                device.key_span,
                message,
                "write the device as `resources: {devices: [/dev/…]}` of a job file, and this name under `kubernetes.devices` of a target",
            );
        }
        return;
    };
    let part = first.key_span;
    let gpu = request(provider, &holes);
    for device in devices {
        pod.role.draft.account.field(device.key_span, format!("roles.{}.resources.gpu", pod.role.name));
    }
    write(pod, provider, &gpu, part);
}

fn write(pod: &mut Pod<'_, '_, '_>, provider: &Provider, gpu: &Json, part: Span) {
    pod.role.draft.set(&["roles", pod.role.name, "resources", "gpu"], part, node(part, gpu));
    let default = providers().iter().find(|known| known.vendor == provider.vendor);
    if default.is_none_or(|default| default.name != provider.name) {
        let path = ["kubernetes", "gpu", "provider"];
        pod.role.draft.need_of_target(&path, part, string(part, &provider.name));
    }
}

/// `gpu` of a job for what a request says.
fn request(provider: &Provider, holes: &Holes) -> Json {
    let of = |name: &str| holes.get(name).map(|(text, unit)| (text.as_str(), *unit));
    let whole = |name: &str| of(name).and_then(|(text, _)| text.parse::<u64>().ok());
    let count = whole("count").or_else(|| whole("percent").map(|percent| percent.div_ceil(100))).unwrap_or(1);
    let mut share = serde_json::Map::new();
    if let Some((memory, unit)) = of("memory") {
        let factor = match unit {
            Some(Unit::B) => 1,
            Some(Unit::Blocks) => 1 << 28,
            Some(Unit::GB) => 1_000_000_000,
            Some(Unit::GiB | Unit::GiBUnlessSet) => 1 << 30,
            _ => 1 << 20,
        };
        let bytes = memory.parse::<u64>().unwrap_or(1).saturating_mul(factor);
        share.insert("memory".to_owned(), json!(size(bytes)));
    }
    if let Some(cores) = whole("cores") {
        share.insert("cores".to_owned(), json!(cores));
    }
    if let Some((profile, _)) = of("profile") {
        // The device plugin's own spelling of `+`.
        let profile = profile.strip_suffix(".me").map_or(profile.to_owned(), |base| format!("{base}+me"));
        share.insert("profile".to_owned(), json!(profile));
    }
    let is_default = provider.vendor == jobc_schema::gpu::Vendor::Nvidia;
    let model = of("model").map(|(model, _)| model.to_owned());
    if is_default && share.is_empty() && model.is_none() {
        return json!(count);
    }
    let mut gpu = json!({ "count": count });
    if !is_default {
        gpu["vendor"] = json!(provider.vendor.as_str());
    }
    if let Some(model) = model {
        gpu["model"] = json!(model);
    }
    if !share.is_empty() {
        gpu["share"] = Json::Object(share);
    }
    gpu
}

/// The amounts of resources by the form of a provider; `None` if one of them is not in it.
fn holes(form: &RequestForm, devices: &[&Entry]) -> Option<Holes> {
    let mut holes = Holes::new();
    for device in devices {
        let amount = scalar(&device.value)?;
        let ask = form.asks.iter().find_map(|ask| {
            let key = matched(&ask.key, &device.key)?;
            let amount = matched(&ask.amount, &amount)?;
            Some((key, amount, ask.unit))
        });
        let (key, amount, unit) = ask?;
        holes.extend(key.into_iter().chain(amount).map(|(name, text)| (name, (text, unit))));
    }
    // What the form asks for besides comes from the number of GPUs.
    let is_whole = form.takes.is_empty();
    let has_part =
        ["memory", "cores", "profile", "count", "percent"].iter().any(|name| holes.contains_key(*name));
    (has_part && (is_whole || holes.contains_key("memory") || holes.contains_key("cores"))).then_some(holes)
}

/// What stands for the hole of a pattern such as `nvidia.com/mig-{profile}`: none of one without a hole. `None` if the
/// text is another.
fn matched(pattern: &str, text: &str) -> Option<Vec<(String, String)>> {
    let Some((before, rest)) = pattern.split_once('{') else {
        return (pattern == text).then(Vec::new);
    };
    let (name, after) = rest.split_once('}')?;
    if name == "resource" || name == "shared" {
        return (before == text && !text.is_empty()).then(Vec::new);
    }
    let value = text.strip_prefix(before)?.strip_suffix(after)?;
    (!value.is_empty()).then(|| vec![(name.to_owned(), value.to_owned())])
}

/// A claim that a container uses, where its template or itself is in the same file.
pub(super) fn claim(pod: &mut Pod<'_, '_, '_>, item: &Node) {
    let part = item.span;
    only(item, &["name", "request"], "a claim of a container", pod.role.draft);
    let name = text_at(item, "name").unwrap_or_default();
    let Some(of_pod) = named(pod.spec.get("resourceClaims"), &name) else {
        return pod.role.draft.invalid(part, format!("the pod has no claim `{name}`"), "");
    };
    let path = format!("roles.{}.resources.gpu", pod.role.name);
    let object = |kind: &str, key: &str| {
        let name = text_at(of_pod, key)?;
        Some((kind.to_owned(), name.clone(), pod.context.objects.get(kind, &name, &path)))
    };
    let object = object("ResourceClaimTemplate", "resourceClaimTemplateName")
        .or_else(|| object("ResourceClaim", "resourceClaimName"));
    let Some((kind, name, Some(object))) = object else {
        let (kind, name, _) = object.unwrap_or(("claim".to_owned(), name, None));
        pod.role.draft.note(of_pod.span, "the container's line is reported");
        return pod.role.draft.lacks(
            part,
            format!("the {kind} `{name}` is not in the file"),
            format!("it says which devices: {}", env::fetched(&kind, &name)),
        );
    };
    if kind == "ResourceClaim" {
        let instead = "`resources: {gpu: {count: 1, share: {…}}}` is a part of one";
        pod.role.draft.changed(
            part,
            format!("the devices of the claim `{name}` are for all who name it: each role gets its own"),
            instead,
        );
    }
    let spec = object.get("spec");
    let devices = spec.and_then(|spec| spec.get("spec").unwrap_or(spec).get("devices"));
    let all = devices.and_then(|devices| devices.get("requests")).map_or(&[][..], Node::items);
    let only_one = text_at(item, "request");
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for request in all.iter().filter(|request| only_one.is_none() || text_at(request, "name") == only_one) {
        // Of alternatives the first is the one that is wanted.
        let first = request.get("firstAvailable").and_then(|list| list.items().first());
        let wanted = request.get("exactly").or(first).unwrap_or(request);
        let class = text_at(wanted, "deviceClassName").unwrap_or_default();
        let count = text_at(wanted, "count").and_then(|count| count.parse().ok()).unwrap_or(1);
        *counts.entry(class).or_default() += count;
    }
    pod.role.draft.account.field(of_pod.span, &path);
    pod.role.draft.account.field(part, &path);
    for (class, count) in counts {
        devices_of(pod, &class, count, part);
    }
}

/// Devices of a class.
fn devices_of(pod: &mut Pod<'_, '_, '_>, class: &str, count: u64, part: Span) {
    let known = CLASSES.iter().find(|(known, _)| *known == class).map(|(_, name)| *name);
    let is_gpu = ["gpu", "npu", "accel"].iter().any(|word| class.contains(word));
    let default = providers().iter().find(|known| known.vendor == jobc_schema::gpu::Vendor::Nvidia);
    let provider = match known {
        Some(name) => providers().iter().find(|known| known.name == name),
        None => default.filter(|_| is_gpu),
    };
    let Some(provider) = provider else {
        return pod.role.draft.changed(
            part,
            format!("devices of the class `{class}` are not requested: jobc does not know their driver"),
            "`kubernetes: {patches: [{kind: Job, patch: …}]}` of a target adds the claim",
        );
    };
    if known.is_none() {
        pod.role.draft.changed(
            part,
            format!("devices of the class `{class}` are taken for GPUs"),
            "`kubernetes: {gpu: {provider: nvidia-dra}}` of a target claims those of NVIDIA's driver",
        );
    }
    let before = pod.role.get(&["resources", "gpu"]);
    let before = before.and_then(|gpu| super::facts::number_of(gpu.get("count").unwrap_or(gpu))).unwrap_or(0);
    let count = count.saturating_add(before);
    let gpu = request(provider, &Holes::from([("count".to_owned(), (count.to_string(), None))]));
    write(pod, provider, &gpu, part);
}
