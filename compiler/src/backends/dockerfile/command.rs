//! The command that builds an image.

use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_schema::plan::{ImagePlan, ImageSource, JobPlan, SecretPlan};

use crate::backend::{Content, Context, File};
use crate::diagnostic::{Diagnostic, Sink, codes};

use jobc_schema::shell;

/// The name of the image in targets: its reference, prefixed with the registry of the target.
fn tag(job: &JobPlan, image: &ImagePlan) -> String {
    match &job.target.settings.registry {
        Some(registry) => format!("{}/{}", registry.trim_end_matches('/'), image.reference),
        None => image.reference.clone(),
    }
}

/// The way from the image's directory to the job file's.
fn to_job(context: &Context<'_>) -> Utf8PathBuf {
    Utf8Path::new("../..").join(&context.to_job)
}

/// The comment at the top of a Dockerfile: what it builds, and how to build it.
pub(super) fn head(job: &JobPlan, name: &str, image: &ImagePlan, context: &Context<'_>) -> Vec<String> {
    let mut head = vec![
        format!(
            "Image `{name}` of job `{}`, written by jobc. Build it with build.sh, or by hand in this directory:",
            job.name
        ),
        String::new(),
    ];
    let words = arguments(job, image, context, None);
    head.push(format!("  docker build {}", words.join(" ")));
    head
}

/// `build.sh`: builds the image from any directory; further arguments go to the builder.
pub(super) fn build_script(
    directory: &Utf8Path,
    job: &JobPlan,
    name: &str,
    image: &ImagePlan,
    context: &Context<'_>,
    sink: &mut Sink,
) -> File {
    let words = arguments(job, image, context, Some(sink));
    let mut text =
        format!("#!/bin/sh\n# Builds image `{name}` of job `{}`; arguments go to the builder.\n", job.name);
    if job.target.settings.registry.is_some() {
        let _ = writeln!(text, "# To push it: docker push {}", shell::quote(&tag(job, image)));
    }
    text.push_str(
        "set -eu\ncd \"$(dirname \"$0\")\"\nDOCKER_BUILDKIT=1 exec \"${DOCKER:-docker}\" build \"$@\"",
    );
    for word in &words {
        text.push_str(" \\\n    ");
        text.push_str(word);
    }
    text.push('\n');
    let mut file = File::new(directory.join("build.sh"), Content::Text(text));
    file.mode = 0o755;
    file
}

/// The arguments after `docker build`, quoted, an option and its value together; the context last.
fn arguments(
    job: &JobPlan,
    image: &ImagePlan,
    context: &Context<'_>,
    mut sink: Option<&mut Sink>,
) -> Vec<String> {
    let up = to_job(context);
    let option = |name: &str, value: &str| format!("{name} {}", shell::quote(value));
    let tag = option("--tag", &tag(job, image));
    match &image.source {
        ImageSource::Build { platform, secrets, .. } => {
            let mut words = vec![option("--file", "Dockerfile"), tag];
            words.extend(platform.as_ref().map(|platform| option("--platform", platform)));
            for name in secrets {
                words.extend(secret(job, name, &up, image, sink.as_deref_mut()));
            }
            words.push(shell::quote(up.as_str()));
            words
        }
        ImageSource::Dockerfile { path, context: directory, target, args, .. } => {
            let mut words = vec![option("--file", up.join(path).as_str()), tag];
            words.extend(target.as_ref().map(|stage| option("--target", stage)));
            words.extend(args.iter().map(|(name, value)| option("--build-arg", &format!("{name}={value}"))));
            let directory = if directory == "." { up } else { up.join(directory) };
            words.push(shell::quote(directory.as_str()));
            words
        }
        ImageSource::Reference {} | ImageSource::Host { .. } | ImageSource::File { .. } => vec![],
    }
}

/// `--secret`: the builder gets the location of the value, never the value.
fn secret(
    job: &JobPlan,
    name: &str,
    up: &Utf8Path,
    image: &ImagePlan,
    sink: Option<&mut Sink>,
) -> Option<String> {
    let value = match job.secrets.get(name)? {
        SecretPlan::Env(variable) => shell::quote(&format!("id={name},env={variable}")),
        SecretPlan::File(path) => match path.strip_prefix("~/") {
            Some(rest) => format!("id={name},src=\"$HOME\"/{}", shell::quote(rest)),
            None => shell::quote(&format!("id={name},src={}", up.join(path))),
        },
        SecretPlan::Store { .. } => {
            if let Some(sink) = sink {
                let at = image.declared_at.key("secrets");
                sink.push(
                    Diagnostic::error(
                        codes::BUILD_SECRET_STORE,
                        format!("a build cannot read secret `{name}` from a secret store"),
                    )
                    .at(&at, "read by the build")
                    .at(&jobc_schema::Pointer::ROOT.keys(["secrets", name]), "comes from a store")
                    .note("declare another secret for the build with `env: NAME` or `file: PATH`"),
                );
            }
            return None;
        }
    };
    Some(format!("--secret {value}"))
}
