//! The templates that come with jobc: `stdlib/templates/`.

/// Name and text of each.
const TABLE: &[(&str, &str)] = &[
    ("ddp", include_str!("../../../stdlib/templates/ddp.yaml")),
    ("jupyter", include_str!("../../../stdlib/templates/jupyter.yaml")),
    ("tensorboard", include_str!("../../../stdlib/templates/tensorboard.yaml")),
    ("torchrun", include_str!("../../../stdlib/templates/torchrun.yaml")),
];

/// The built-in templates: the name after `std/`, and the text.
pub fn built_in() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.iter().copied()
}

/// The text of a built-in template.
pub(super) fn text(name: &str) -> Option<&'static str> {
    TABLE.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
