//! The templates that come with jobc: `stdlib/templates/`.

/// The name and text of each.
const TABLE: &[(&str, &str)] = &[
    ("code-server", include_str!("../../../stdlib/templates/code-server.yaml")),
    ("data-prepare", include_str!("../../../stdlib/templates/data-prepare.yaml")),
    ("ddp", include_str!("../../../stdlib/templates/ddp.yaml")),
    ("deepspeed", include_str!("../../../stdlib/templates/deepspeed.yaml")),
    ("elastic", include_str!("../../../stdlib/templates/elastic.yaml")),
    ("horovod", include_str!("../../../stdlib/templates/horovod.yaml")),
    ("jax", include_str!("../../../stdlib/templates/jax.yaml")),
    ("jupyter", include_str!("../../../stdlib/templates/jupyter.yaml")),
    ("mpi", include_str!("../../../stdlib/templates/mpi.yaml")),
    ("nccl-test", include_str!("../../../stdlib/templates/nccl-test.yaml")),
    ("ray", include_str!("../../../stdlib/templates/ray.yaml")),
    ("sweep", include_str!("../../../stdlib/templates/sweep.yaml")),
    ("tensorboard", include_str!("../../../stdlib/templates/tensorboard.yaml")),
    ("tensorflow-ps", include_str!("../../../stdlib/templates/tensorflow-ps.yaml")),
    ("torchrun", include_str!("../../../stdlib/templates/torchrun.yaml")),
    ("vllm-serve", include_str!("../../../stdlib/templates/vllm-serve.yaml")),
];

/// The built-in templates: the name after `std/`, and the text.
pub fn built_in() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.iter().copied()
}

/// The text of a built-in template.
pub(super) fn text(name: &str) -> Option<&'static str> {
    TABLE.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
