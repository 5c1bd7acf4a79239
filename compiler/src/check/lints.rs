//! The lints of a resolved job, in the order they run.

mod accelerate_config;
mod background;
mod card_too_small;
mod conda_activate;
mod cpu_image;
mod cuda_for_card;
mod data_path;
mod ddp_processes;
mod driver_for_cuda;
mod entrypoint_misfit;
mod env_literal;
mod few_pids;
mod foreign_variable;
mod gpu_not_requested;
mod gpu_without_memory;
mod host_port;
mod idle_gpu_image;
mod image_cuda;
mod image_requires;
mod job_never_ends;
mod launcher_alone;
mod launcher_disagrees;
mod launcher_misfit;
mod list_of_commands;
mod little_memory;
mod local_rendezvous;
mod many_cpus;
mod mig_profile;
mod model_parallel;
mod mount;
mod mutable_tag;
mod nccl_signal;
mod needs_endless;
mod needs_last;
mod no_cuda_compiler;
mod no_program;
mod no_shm;
mod nodes_alone;
mod over_budget;
mod peer_at_localhost;
mod pipe_failure;
mod preflight_program;
mod rank_by_hand;
mod read_only_write;
mod result_lost;
mod retry_one_rank;
mod same_rank;
mod scratch_over_disk;
mod script_not_copied;
mod served_port;
mod shared_write;
mod shm_covered;
mod shm_over_memory;
mod ssh_user;
mod sudo;
mod target_driver;
mod target_models;
mod target_policy;
mod target_signature;
mod target_variable;
mod threshold_in_gang;
mod timeout_under_grace;
mod torchrun_grace;
mod unknown_model;
mod unpinned_package;
mod unset_variable;
mod visible_devices;

use super::view::View;
use crate::diagnostic::Sink;

/// A lint checks a job and reports its findings.
type Lint = fn(&View<'_>, &mut Sink);

/// All of them.
pub(super) const TABLE: &[Lint] = &[
    target_policy::check,
    target_signature::check,
    launcher_alone::check,
    nodes_alone::check,
    launcher_misfit::check,
    accelerate_config::check,
    ddp_processes::check,
    rank_by_hand::check,
    launcher_disagrees::check,
    model_parallel::check,
    local_rendezvous::check,
    same_rank::check,
    threshold_in_gang::check,
    retry_one_rank::check,
    ssh_user::check,
    shm_over_memory::check,
    shm_covered::check,
    scratch_over_disk::check,
    no_shm::check,
    little_memory::check,
    few_pids::check,
    many_cpus::check,
    gpu_without_memory::check,
    timeout_under_grace::check,
    over_budget::check,
    torchrun_grace::check,
    nccl_signal::check,
    shared_write::check,
    read_only_write::check,
    result_lost::check,
    data_path::check,
    pipe_failure::check,
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
    gpu_not_requested::check,
    cpu_image::check,
    no_cuda_compiler::check,
    no_program::check,
    conda_activate::check,
    preflight_program::check,
    visible_devices::check,
    host_port::check,
    served_port::check,
    peer_at_localhost::check,
    mutable_tag::check,
    unpinned_package::check,
    needs_endless::check,
    needs_last::check,
    job_never_ends::check,
    background::check,
    list_of_commands::check,
    entrypoint_misfit::check,
    script_not_copied::check,
    sudo::check,
    env_literal::check,
    target_variable::check,
    unset_variable::check,
    foreign_variable::check,
    mount::check,
];
