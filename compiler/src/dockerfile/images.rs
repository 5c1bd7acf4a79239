//! The Dockerfiles that a plan's images are built from.

use camino::{Utf8Path, Utf8PathBuf};
use jobc_schema::plan::{ImageSource, JobPlan};

use crate::diagnostic::Sink;
use crate::files::Files;
use crate::lock::Lock;
use crate::source::{Source, SourceId, Sources};

use super::inspect;
use super::request::Request;

/// Reads the Dockerfiles that a job names, reports their mistakes, and notes base images, variables and entrypoints in the plan.
///
/// `job` is the job file's source: Dockerfiles are shown relative to the same directory.
pub fn inspect_images(
    plan: &mut JobPlan,
    job: SourceId,
    files: &dyn Files,
    lock: &Lock,
    sources: &mut Sources,
    sink: &mut Sink,
) {
    for image in plan.images.values_mut() {
        let ImageSource::Dockerfile { path, context, target, args, base, env, entrypoint, locked } =
            &mut image.source
        else {
            continue;
        };
        let Some((source, bytes)) = open(path, job, files, sources) else { continue };
        let request = Request {
            source,
            bytes: &bytes,
            context: Utf8Path::new(context),
            target: target.as_deref(),
            args,
            declared_at: &image.declared_at,
            files,
            lock,
        };
        if let Some(facts) = inspect(&request, sink) {
            *base = facts.base;
            *env = facts.env;
            *entrypoint = facts.entrypoint.unwrap_or_default();
            *locked = facts.locked;
        }
    }
}

/// The source and content of a Dockerfile: those read for another image or target, or new ones.
///
/// A missing file was reported when the image was resolved.
fn open(path: &str, job: SourceId, files: &dyn Files, sources: &mut Sources) -> Option<(SourceId, Vec<u8>)> {
    let shown =
        sources.get(job).path().parent().map_or_else(Utf8PathBuf::new, Utf8Path::to_path_buf).join(path);
    let bytes = files.read(Utf8Path::new(path)).ok()?;
    if let Some((known, _)) = sources.iter().find(|(id, source)| *id != job && source.path() == shown) {
        return Some((known, bytes));
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some((sources.add(Source::new(shown, text)), bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::files::MemoryFiles;

    #[test]
    fn facts_are_in_the_plan() {
        let image = |path: &str| {
            json!({
                "source": {"kind": "dockerfile", "path": path, "context": "."}, "reference": "x", "declared_at": "/image"
            })
        };
        let mut plan: JobPlan = serde_json::from_value(json!({
            "name": "x", "target": {"name": "a", "settings": {"backends": ["dockerfile"]}},
            "images": {"main": image("docker/Dockerfile"), "same": image("docker/Dockerfile"), "gone": image("Dockerfle")},
            "roles": [], "stages": [], "gang": "auto", "network": "auto",
            "totals": {"instances": 0, "cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "gpu_slices": 0}
        }))
        .unwrap();
        let mut sources = Sources::new();
        let job = sources.add(Source::new("jobs/job.yaml", ""));
        let files = MemoryFiles::default().with(
            "docker/Dockerfile",
            "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nENV NVIDIA_VISIBLE_DEVICES=all\nENTRYPOINT [\"serve\"]\n",
        );
        let mut sink = Sink::new();
        inspect_images(&mut plan, job, &files, &Lock::default(), &mut sources, &mut sink);
        assert!(sink.diagnostics().is_empty());
        let paths: Vec<&str> = sources.iter().map(|(_, source)| source.path().as_str()).collect();
        assert_eq!(paths, ["jobs/job.yaml", "jobs/docker/Dockerfile"]);
        for name in ["main", "same"] {
            let ImageSource::Dockerfile { base, env, entrypoint, .. } = &plan.images[name].source else {
                panic!("changed")
            };
            assert_eq!(base.as_deref(), Some("nvidia/cuda:12.4.1-base-ubuntu22.04"));
            assert_eq!(env["NVIDIA_VISIBLE_DEVICES"], "all");
            assert_eq!(*entrypoint, ["serve"]);
        }
    }
}
