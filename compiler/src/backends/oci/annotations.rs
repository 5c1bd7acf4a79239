//! Annotations: information for the runtime of a bundle that config.json has no field for. docs/reference/oci.md has
//! the table.

use indexmap::IndexMap;
use jobc_schema::gpu::Isolation;
use jobc_schema::job::Network;
use jobc_schema::plan::{
    EnvPlan, FileContent, GpuPlan, ImageSource, JobPlan, RolePlan, SecretPlan, VolumeKind, VolumeSource,
};

use crate::backend::tasks::Task;

use super::gpu::{self, Injection};
use super::{image, mounts};

/// The annotations of a task's bundle, in a fixed order.
pub(super) fn annotations(
    job: &JobPlan,
    task: Task<'_>,
    injection: Option<&Injection>,
) -> IndexMap<String, String> {
    let role = task.role;
    let mut notes = Notes::default();
    notes.add("job", &job.name);
    notes.add("role", &role.name);
    notes.add("index", task.index.to_string());
    if let Some(reference) = image::reference(job, role) {
        notes.add("image", reference);
    }
    if let Some(ImageSource::Host { cwd, venv, env }) = job.image_of(role).map(|image| &image.source) {
        notes.add_if("host.cwd", cwd.then_some(true));
        notes.add_if("host.venv", venv.then_some(true));
        notes.add_if("host.env", (!env.is_empty()).then(|| env.join(",")));
    }
    notes.add("from-image", image::image_settings(job, role).join(","));
    if let Some(user) = role.user.as_deref().or(image::known(job, role).user) {
        notes.add("user", user);
    }
    notes.add("network", network(job.network));
    for (name, address) in &job.extra_hosts {
        notes.add(&format!("extra-host.{name}"), address);
    }
    if let Some(dns) = &job.dns {
        for (key, values) in [("servers", &dns.servers), ("search", &dns.search), ("options", &dns.options)] {
            notes.add_if(&format!("dns.{key}"), (!values.is_empty()).then(|| values.join(",")));
        }
    }
    if let Some(ssh) = job.distributed.as_ref().and_then(|d| d.ssh.as_ref()) {
        notes.add("ssh", format!("{}:{}", ssh.user, ssh.port));
    }
    resources(&mut notes, job, task);
    volumes(&mut notes, job, role);
    secrets(&mut notes, job, role);
    for (name, value) in &role.labels {
        notes.add(&format!("label.{name}"), value);
    }
    if let Some(signal) = &role.stop_signal {
        notes.0.insert("org.opencontainers.image.stopSignal".to_owned(), signal.clone());
    }
    if let Some(Injection::Devices(names)) = injection {
        notes.0.insert("cdi.k8s.io/jobc".to_owned(), names.clone());
    }
    notes.0
}

/// Annotations under `dev.jobc.`.
#[derive(Default)]
struct Notes(IndexMap<String, String>);

impl Notes {
    fn add(&mut self, key: &str, value: impl Into<String>) {
        self.0.insert(format!("dev.jobc.{key}"), value.into());
    }

    fn add_if(&mut self, key: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.add(key, value.to_string());
        }
    }
}

fn network(network: Network) -> &'static str {
    match network {
        Network::Auto | Network::Host => "host",
        Network::Job => "job",
        Network::None => "none",
    }
}

fn resources(notes: &mut Notes, job: &JobPlan, task: Task<'_>) {
    let resources = &task.role.resources;
    notes.add_if("disk", resources.disk_bytes);
    for (device, limits) in resources.io.iter().filter(|(device, _)| device.starts_with('/')) {
        let rates: Vec<String> = limits.rates().map(|(key, rate)| format!("{key}={rate}")).collect();
        notes.add(&format!("io.{device}"), rates.join(" "));
    }
    notes.add_if("rdma", resources.rdma.filter(|count| *count > 0));
    notes.add_if("nodes", Some(resources.devices.join(",")).filter(|paths| !paths.is_empty()));
    if let Some(gpu) = task.role.gpus() {
        gpus(notes, job, task, gpu);
    }
}

fn gpus(notes: &mut Notes, job: &JobPlan, task: Task<'_>, gpu: &GpuPlan) {
    let numbers = gpu::list(&gpu::numbers(gpu, task));
    let names = job.gpu_names(task.role, task.index).unwrap_or_default().join(",");
    notes.add_if("gpu.devices", Some(&names).filter(|names| !names.is_empty() && **names != numbers));
    notes.add("gpus", numbers);
    notes.add("gpu.vendor", gpu.vendor.as_str());
    if !gpu.models.is_empty() {
        notes.add("gpu.models", gpu.models.join(","));
    }
    notes.add_if("gpu.memory", gpu.memory_bytes);
    notes.add_if("gpu.compute-capability", gpu.compute_capability.as_ref());
    notes.add_if("gpu.cuda", gpu.cuda.as_ref());
    notes.add_if("gpu.driver", gpu.driver.as_ref());
    if let Some(share) = &gpu.share {
        notes.add_if("gpu.share.memory", share.memory_bytes);
        notes.add_if("gpu.share.cores", share.cores_percent);
        notes.add_if("gpu.share.profile", share.profile.as_ref());
        notes.add(
            "gpu.share.isolation",
            match share.isolation {
                Isolation::None => "none",
                Isolation::Soft => "soft",
                Isolation::Hard => "hard",
            },
        );
        notes.add("gpu.share.same-card", share.same_card.to_string());
        notes.add_if("gpu.share.time", share.time.then_some(true));
    }
}

/// Where fetched volumes come from, and which directories must be made before the start.
fn volumes(notes: &mut Notes, job: &JobPlan, role: &RolePlan) {
    for mount in &role.mounts {
        let Some(volume) = job.volumes.get(&mount.volume) else { continue };
        if volume.kind == VolumeKind::Output
            || matches!(volume.source, VolumeSource::Job { .. } | VolumeSource::Instance { .. })
        {
            notes.add(&format!("output.{}", mount.volume), &mount.path);
        }
        if mounts::storage(job, &mount.volume).is_some() {
            continue;
        }
        let fetched = match &volume.source {
            VolumeSource::Https { url, unpack: true } => format!("unpack+{url}"),
            VolumeSource::Https { url, unpack: false } => url.clone(),
            VolumeSource::Git { url, reference: Some(reference) } => format!("git+{url}#{reference}"),
            VolumeSource::Git { url, reference: None } => format!("git+{url}"),
            _ => continue,
        };
        notes.add(&format!("volume.{}", mount.volume), fetched);
        notes.add_if(&format!("secret.volume.{}", mount.volume), volume.secret.as_ref());
    }
}

/// Which variables and files hold secrets, and where their values come from; never the values.
fn secrets(notes: &mut Notes, job: &JobPlan, role: &RolePlan) {
    let mut used: Vec<&str> = vec![];
    for (name, value) in &role.env {
        if let EnvPlan::Secret { secret } = value {
            notes.add(&format!("secret.env.{name}"), secret);
            used.push(secret);
        }
    }
    for file in &role.files {
        if let FileContent::Secret { secret } = &file.content {
            notes.add(&format!("secret.file.{}", file.path), secret);
            notes.add(&format!("secret.mode.{}", file.path), format!("{:04o}", file.mode));
            used.push(secret);
        }
    }
    for mount in &role.mounts {
        used.extend(job.volumes.get(&mount.volume).and_then(|volume| volume.secret.as_deref()));
    }
    for name in used {
        let source = match job.secrets.get(name) {
            Some(SecretPlan::Env(variable)) => format!("env:{variable}"),
            Some(SecretPlan::File(path)) => format!("file:{path}"),
            Some(SecretPlan::Store { name, key }) => format!("store:{name}/{key}"),
            None => continue,
        };
        notes.add(&format!("secret.from.{name}"), source);
    }
}
