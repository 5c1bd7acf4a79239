//! Names of a rendezvous in the job file: frameworks, parts, and the port's label.

use jobc_schema::distributed::{Framework, MemberPart};

/// The label of the port of the rendezvous.
pub(crate) const RENDEZVOUS: &str = "rendezvous";

/// The framework's name in the job file.
pub(crate) fn framework_name(framework: Framework) -> &'static str {
    match framework {
        Framework::Torchrun => "torchrun",
        Framework::Ddp => "ddp",
        Framework::Tensorflow => "tensorflow",
        Framework::Horovod => "horovod",
        Framework::Mpi => "mpi",
        Framework::Deepspeed => "deepspeed",
        Framework::Jax => "jax",
        Framework::Accelerate => "accelerate",
        Framework::Lightning => "lightning",
        Framework::Composer => "composer",
        Framework::Ray => "ray",
    }
}

/// The part's name in the job file.
pub(super) fn part_name(part: MemberPart) -> &'static str {
    match part {
        MemberPart::Chief => "chief",
        MemberPart::Worker => "worker",
        MemberPart::Ps => "ps",
        MemberPart::Evaluator => "evaluator",
        MemberPart::Launcher => "launcher",
        MemberPart::Head => "head",
    }
}
