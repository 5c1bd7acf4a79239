//! Containers of jobc in a direct script: each task runs a copy of its bundle in which the addresses of the job are filled in.

use std::fmt::Write as _;

use jobc_schema::plan::RolePlan;
use jobc_schema::shell::quote;
use jobc_schema::target::image_file_name;

use super::parts::Parts;
use super::run;
use super::text::port_sum;

/// The command of a direct script that runs the bundle of a task.
pub(super) fn command(parts: &Parts<'_>, role: &RolePlan) -> String {
    let mut run = format!("exec {} run --cgroup inherited", parts.program());
    if run::is_host(parts.job, role) {
        run.push_str(" --root host");
    } else {
        run.push_str(" ${root:+--root \"$root\"}");
        run.push_str(&image_root(parts));
    }
    if run::uses_secrets(role) {
        run.push_str(" --secrets \"$secrets\"");
    }
    if run::is_mpi_step(parts.job, role) {
        run.push_str(" --mpi");
    }
    let name = &role.name;
    let _ = write!(run, " --id \"$SLURM_JOB_ID-{name}-$SLURM_PROCID-$$\" \"$bundles/{name}-$SLURM_PROCID\"");
    format!("bash -c {}", quote(&run))
}

/// Where images are unpacked on the nodes; jobc itself chooses a directory for temporary files.
pub(super) fn image_root(parts: &Parts<'_>) -> String {
    parts.settings.store.as_ref().map(|store| format!(" --image-root {}", quote(store))).unwrap_or_default()
}

/// The lines of a direct script that copy the bundles of a role and fill in the addresses.
pub(super) fn prepare(parts: &Parts<'_>, role: &RolePlan, code: Option<&str>, out: &mut String) {
    let name = &role.name;
    out.push_str("export bundles=${PWD%/slurm}.slurm/bundles-$SLURM_JOB_ID root=\n");
    let _ = writeln!(out, "mkdir -p \"$bundles\" && cp -r ../oci/{name}-* \"$bundles\" || exit 125");
    if let Some(code) = code {
        let _ = writeln!(
            out,
            "mkdir -p \"$bundles/volumes\" && ln -sfn {code} \"$bundles/volumes/jobc-code\" || exit 125"
        );
    }
    let _ = write!(
        out,
        "fill=()\nfor i in \"${{!nodes[@]}}\"; do\n  fill+=(-e \"s#@jobc:host:{name}:$i@#${{nodes[i]}}#g\""
    );
    for port in &role.ports {
        let Some(offset) = parts.ports.offset(name, &port.label) else { continue };
        for number in 0..port.count {
            let sum = port_sum(parts, offset + number);
            let each = if port.count > 1 { format!(" * {}", port.count) } else { String::new() };
            let _ = write!(
                out,
                "\n    -e \"s#@jobc:port:{name}:{}:$i+{number}@#$(({sum} + i{each}))#g\"",
                port.label
            );
        }
    }
    out.push_str(")\ndone\nfind \"$bundles\" -type f -exec sed -i \"${fill[@]}\" -e 's#@jobc:[^@]*@##g' {} + || exit 125\n");
    let image = parts.job.image_of(role).filter(|_| !run::is_host(parts.job, role));
    if let Some(image) = image {
        let file = quote(&image_file_name(&image.reference));
        let mut places = vec![format!("images/{file}")];
        // `jobc submit` brings images that the directory of the target does not have.
        places.extend(parts.settings.images.as_ref().map(|directory| format!("{}/{file}", quote(directory))));
        let places: Vec<String> = places
            .iter()
            .flat_map(|place| ["", ".tar", ".tar.gz"].map(|end| format!("{place}{end}")))
            .collect();
        let _ = writeln!(
            out,
            "# The files of the image; otherwise its registry has them.\nfor file in {}; do [ ! -e \"$file\" ] || root=$(realpath \"$file\"); done",
            places.join(" ")
        );
    }
}
