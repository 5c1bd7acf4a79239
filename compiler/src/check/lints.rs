//! The lints of a resolved job, in the order they run.

mod background;
mod card_too_small;
mod cpu_image;
mod cuda_for_card;
mod ddp_processes;
mod driver_for_cuda;
mod few_pids;
mod gpu_without_memory;
mod host_port;
mod idle_gpu_image;
mod image_cuda;
mod image_requires;
mod job_never_ends;
mod launcher_disagrees;
mod little_memory;
mod many_cpus;
mod mig_profile;
mod mount;
mod mutable_tag;
mod needs_endless;
mod no_shm;
mod rank_by_hand;
mod retry_one_rank;
mod shared_write;
mod shm_over_memory;
mod sudo;
mod target_driver;
mod target_models;
mod threshold_in_gang;
mod timeout_under_grace;
mod torchrun_alone;
mod unknown_model;
mod unpinned_package;

use super::view::View;
use crate::diagnostic::Sink;

/// A lint checks a job and reports its findings.
type Lint = fn(&View<'_>, &mut Sink);

/// All of them.
pub(super) const TABLE: &[Lint] = &[
    torchrun_alone::check,
    ddp_processes::check,
    rank_by_hand::check,
    launcher_disagrees::check,
    threshold_in_gang::check,
    retry_one_rank::check,
    shm_over_memory::check,
    no_shm::check,
    little_memory::check,
    few_pids::check,
    many_cpus::check,
    gpu_without_memory::check,
    timeout_under_grace::check,
    shared_write::check,
    image_cuda::check,
    image_requires::check,
    driver_for_cuda::check,
    target_driver::check,
    cuda_for_card::check,
    unknown_model::check,
    card_too_small::check,
    mig_profile::check,
    target_models::check,
    idle_gpu_image::check,
    cpu_image::check,
    host_port::check,
    mutable_tag::check,
    unpinned_package::check,
    needs_endless::check,
    job_never_ends::check,
    background::check,
    sudo::check,
    mount::check,
];
