//! Backend `dockerfile`: what builds the images of a job.
//!
//! For an image block `<image>/Dockerfile`, `<image>/Dockerfile.dockerignore` and `<image>/build.sh`; for a Dockerfile
//! of the user's own only `<image>/build.sh`, since the file itself is left as it is. Docker reads an ignore file next
//! to a Dockerfile only under the name `<Dockerfile>.dockerignore`; a `.dockerignore` counts in the context's root
//! alone. `docs/reference/dockerfile.md` gives the reasons for the order and form of the instructions.

mod apt;
mod base;
mod build;
mod command;
mod conda;
mod copy;
mod ignore;
mod python;
mod requirements;
mod steps;
#[cfg(test)]
mod tests;
mod user;
mod values;

use camino::Utf8PathBuf;
use jobc_schema::BackendName;
use jobc_schema::plan::{ImagePlan, ImageSource, JobPlan};

use crate::backend::{Backend, Capability, Content, Context, File, Support};
use crate::diagnostic::Sink;

/// Writes Dockerfiles of the images a job builds.
#[derive(Debug)]
pub struct DockerfileBackend;

impl Backend for DockerfileBackend {
    fn name(&self) -> BackendName {
        BackendName::Dockerfile
    }

    fn about(&self) -> &'static str {
        "Dockerfiles of the images a job builds"
    }

    /// An image does not define where and how a job runs, so all of that stays in the plan.
    fn support(&self, capability: Capability, _job: &JobPlan) -> Support {
        match capability {
            Capability::ImageBuild => Support::Full,
            Capability::Needs(_)
            | Capability::NeedsMin
            | Capability::ReadyProbe
            | Capability::ReadyLog
            | Capability::ReadyKeep
            | Capability::MinSucceeded
            | Capability::MinFailed
            | Capability::Retry(_)
            | Capability::RetryExitCodes
            | Capability::Preflight
            | Capability::Stall
            | Capability::ResumeExitCodes
            | Capability::ResumeVariables
            | Capability::Budget
            | Capability::BudgetEnergy
            | Capability::RetryVerdicts
            | Capability::RetryMemory
            | Capability::RetryBackoff
            | Capability::RetryDisruptions
            | Capability::Priority
            | Capability::After
            | Capability::Notify
            | Capability::Idle
            | Capability::Schedule
            | Capability::JobTimeout
            | Capability::RoleTimeout
            | Capability::GangRequired
            | Capability::GangMin
            | Capability::Parallel
            | Capability::MaxParallel
            | Capability::RoleMatrix
            | Capability::RoleMaxParallel
            | Capability::Metrics
            | Capability::Network(_)
            | Capability::ExtraHosts
            | Capability::HostGateway
            | Capability::DnsServers
            | Capability::DnsSearch
            | Capability::PublishHost
            | Capability::PublishService
            | Capability::Files
            | Capability::FileIndex
            | Capability::FileSecret
            | Capability::FileOwner
            | Capability::EnvSecret
            | Capability::SecretFromStarter
            | Capability::SecretFromStore
            | Capability::VolumePath
            | Capability::VolumeNfs
            | Capability::VolumeS3
            | Capability::VolumePvc
            | Capability::VolumeHttps
            | Capability::VolumeGit
            | Capability::VolumeJob
            | Capability::VolumeJobMemory
            | Capability::VolumeInstance
            | Capability::VolumeMemory
            | Capability::VolumeTarget
            | Capability::Code
            | Capability::Subpath
            | Capability::VolumeOptions
            | Capability::NoCpu
            | Capability::NoMemory
            | Capability::Shm
            | Capability::Disk
            | Capability::Pids
            | Capability::Hugepages
            | Capability::DiskIo
            | Capability::Rdma
            | Capability::Devices
            | Capability::Ulimits
            | Capability::Gpu(_)
            | Capability::GpuAll
            | Capability::GpuNone
            | Capability::GpuModel
            | Capability::GpuMemory
            | Capability::GpuVersion
            | Capability::GpuShare
            | Capability::GpuTime
            | Capability::GpuGrow
            | Capability::GpuProfile
            | Capability::User
            | Capability::Workdir
            | Capability::ImageCommand
            | Capability::Labels
            | Capability::ReadOnlyRoot
            | Capability::LinuxCapabilities
            | Capability::Privileged
            | Capability::ImageHost
            | Capability::ImageHostEnvironment
            | Capability::ImageFile
            | Capability::RegistryLogin
            | Capability::Elastic
            | Capability::Ssh
            | Capability::GracePeriod
            | Capability::StopSignal => Support::Plan,
        }
    }

    fn applies(&self, job: &JobPlan) -> bool {
        job.images.values().any(|image| image.source.is_built())
    }

    fn lower(&self, job: &JobPlan, context: &Context<'_>, sink: &mut Sink) -> Vec<File> {
        let mut files = Vec::new();
        for (name, image) in &job.images {
            lower_image(job, name, image, context, sink, &mut files);
        }
        files
    }
}

fn lower_image(
    job: &JobPlan,
    name: &str,
    image: &ImagePlan,
    context: &Context<'_>,
    sink: &mut Sink,
    files: &mut Vec<File>,
) {
    let directory = Utf8PathBuf::from(name);
    match &image.source {
        ImageSource::Reference {} | ImageSource::Host { .. } | ImageSource::File { .. } => {}
        ImageSource::Build { .. } => {
            let built = steps::lower(job, name, image, context, sink);
            let mut file = File::new(directory.join("Dockerfile"), Content::Dockerfile(built.dockerfile));
            file.origins = built.origins;
            files.push(file);
            let ignored = ignore::rules(job, &built.copied, context);
            files.push(File::new(directory.join("Dockerfile.dockerignore"), Content::Text(ignored)));
            files.push(command::build_script(&directory, job, name, image, context, sink));
        }
        ImageSource::Dockerfile { .. } => {
            files.push(command::build_script(&directory, job, name, image, context, sink));
        }
    }
}
