//! The words of a rendezvous: frameworks and parts as they are written, and the label of the port.

use jobc_schema::distributed::{Framework, MemberPart};

/// The label of the port that members meet at.
pub(super) const RENDEZVOUS: &str = "rendezvous";

/// The framework as it is written.
pub(crate) fn framework_name(framework: Framework) -> &'static str {
    match framework {
        Framework::Torchrun => "torchrun",
        Framework::Ddp => "ddp",
        Framework::Tensorflow => "tensorflow",
        Framework::Horovod => "horovod",
        Framework::Mpi => "mpi",
        Framework::Deepspeed => "deepspeed",
        Framework::Jax => "jax",
        Framework::Ray => "ray",
    }
}

/// The part as it is written.
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
