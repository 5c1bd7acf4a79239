//! Values of a plan as a person writes them in a job file.

use jobc_schema::plan::{CommandPlan, ImagePlan, ImageSource, Piece, Text, VolumeSource};

/// Thousandths of a CPU as a number of CPUs: `0.5`, `16`.
pub(crate) fn cpus(millis: u64) -> String {
    let text = format!("{}.{:03}", millis / 1000, millis % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What an instance runs.
pub(crate) fn command(command: &CommandPlan) -> String {
    let list = |words: &[Text]| words.iter().map(text).collect::<Vec<_>>().join(" ");
    match command {
        CommandPlan::Image {} => "the image's own".to_owned(),
        CommandPlan::Args(args) => format!("the image's own, with {}", list(args)),
        CommandPlan::Argv { argv, .. } => list(argv),
        CommandPlan::Script { script, .. } => text(script),
    }
}

/// A text; placeholders are shown in the syntax of a job file.
pub(crate) fn text(text: &Text) -> String {
    use jobc_schema::plan::Reference::{Host, Hosts, Index, Port, Ports, Rank};
    let at = |index: &Option<u32>| index.map_or(String::new(), |index| format!("[{index}]"));
    let piece = |piece: &Piece| match piece {
        Piece::Literal(text) => text.clone(),
        Piece::Reference(Index {}) => "${{ instance.index }}".to_owned(),
        Piece::Reference(Rank { .. }) => "$JOBC_RANK".to_owned(),
        Piece::Reference(Host { role, index }) => format!("${{{{ hosts.{role}{} }}}}", at(index)),
        Piece::Reference(Hosts { role, .. }) => format!("${{{{ hosts.{role} }}}}"),
        // An instance's own port needs no role.
        Piece::Reference(Port { role, label, index } | Ports { role, label, index, .. }) => match index {
            Some(_) => format!("${{{{ ports.{role}.{label}{} }}}}", at(index)),
            None => format!("${{{{ ports.{label} }}}}"),
        },
    };
    text.pieces().iter().map(piece).collect()
}

/// Where an image comes from, in a few words.
pub(crate) fn image(image: &ImagePlan) -> String {
    match &image.source {
        ImageSource::Reference {} => image.reference.clone(),
        ImageSource::Host { cwd, venv, env } => {
            let mut words = "the files of the host".to_owned();
            words += if *cwd { ", the working directory" } else { "" };
            words += if *venv { ", the virtual environment" } else { "" };
            if !env.is_empty() {
                words += &format!(", {}", env.join(", "));
            }
            words
        }
        ImageSource::File { path } => path.clone(),
        ImageSource::Build { from, .. } => format!("{} (built on {from})", image.reference),
        ImageSource::Dockerfile { .. } => format!("{} (built from a Dockerfile)", image.reference),
    }
}

/// Where a volume is, as in a job file.
pub(crate) fn source(source: &VolumeSource) -> String {
    match source {
        VolumeSource::Path { path } | VolumeSource::Code { path, digest: None } => path.clone(),
        VolumeSource::Nfs { host, path } => format!("nfs://{host}{path}"),
        VolumeSource::S3 { bucket, path } => format!("s3://{bucket}/{path}"),
        VolumeSource::Pvc { name } => format!("pvc:{name}"),
        VolumeSource::Https { url, .. } => url.clone(),
        VolumeSource::Git { url, reference } => {
            let reference = reference.as_ref().map_or(String::new(), |reference| format!("#{reference}"));
            format!("git+{url}{reference}")
        }
        VolumeSource::Code { path, digest: Some(digest) } => {
            format!("{path}, {digest}")
        }
        VolumeSource::Target {} => "of the target".to_owned(),
        VolumeSource::Job { in_memory: false } => "a directory of the job".to_owned(),
        VolumeSource::Job { in_memory: true } => "a directory of the job in memory".to_owned(),
        VolumeSource::Memory { size_bytes } => {
            format!("a directory of each instance in memory, {}", jobc_schema::Bytes(*size_bytes))
        }
        VolumeSource::Instance { size_bytes: None } => "a directory of each instance".to_owned(),
        VolumeSource::Instance { size_bytes: Some(bytes) } => {
            format!("a directory of each instance, {}", jobc_schema::Bytes(*bytes))
        }
    }
}
