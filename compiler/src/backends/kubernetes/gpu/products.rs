//! The product names of NVIDIA cards as GPU feature discovery labels nodes with them.

use crate::stdlib::models;

/// A card: its family, its variant, the value of the label `nvidia.com/gpu.product`, and whether it supports MIG.
///
/// The label is the driver's own name of the product with `-` for blanks (k8s-device-plugin, gpu-feature-discovery).
/// Drivers before 460 omit `NVIDIA-`, so old cards are listed in both spellings.
struct Product(&'static str, &'static str, &'static str, bool);

#[rustfmt::skip]
const PRODUCTS: &[Product] = &[
    Product("K80", "K80", "Tesla-K80", false),
    Product("P4", "P4", "Tesla-P4", false),
    Product("P40", "P40", "Tesla-P40", false),
    Product("P100", "P100-12GB", "Tesla-P100-PCIE-12GB", false),
    Product("P100", "P100-16GB", "Tesla-P100-PCIE-16GB", false),
    Product("P100", "P100-16GB", "Tesla-P100-SXM2-16GB", false),
    Product("V100", "V100-16GB", "Tesla-V100-PCIE-16GB", false),
    Product("V100", "V100-16GB", "Tesla-V100-SXM2-16GB", false),
    Product("V100", "V100-32GB", "Tesla-V100-PCIE-32GB", false),
    Product("V100", "V100-32GB", "Tesla-V100-SXM2-32GB", false),
    Product("V100", "V100-32GB", "Tesla-V100-SXM3-32GB", false),
    Product("V100", "V100S-32GB", "Tesla-V100S-PCIE-32GB", false),
    Product("T4", "T4", "Tesla-T4", false),
    Product("T4", "T4", "NVIDIA-T4", false),
    Product("A2", "A2", "NVIDIA-A2", false),
    Product("A10", "A10", "NVIDIA-A10", false),
    Product("A10G", "A10G", "NVIDIA-A10G", false),
    Product("A16", "A16", "NVIDIA-A16", false),
    Product("A30", "A30", "NVIDIA-A30", true),
    Product("A40", "A40", "NVIDIA-A40", false),
    Product("A100", "A100-40GB", "A100-PCIE-40GB", true),
    Product("A100", "A100-40GB", "A100-SXM4-40GB", true),
    Product("A100", "A100-40GB", "NVIDIA-A100-PCIE-40GB", true),
    Product("A100", "A100-40GB", "NVIDIA-A100-SXM4-40GB", true),
    Product("A100", "A100-80GB", "A100-SXM4-80GB", true),
    Product("A100", "A100-80GB", "NVIDIA-A100-80GB-PCIe", true),
    Product("A100", "A100-80GB", "NVIDIA-A100-SXM4-80GB", true),
    Product("H100", "H100-80GB", "NVIDIA-H100-80GB-HBM3", true),
    Product("H100", "H100-80GB", "NVIDIA-H100-PCIe", true),
    Product("H100", "H100-94GB", "NVIDIA-H100-NVL", true),
    Product("H200", "H200-141GB", "NVIDIA-H200", true),
    Product("H200", "H200-141GB", "NVIDIA-H200-NVL", true),
    Product("GH200", "GH200-96GB", "NVIDIA-GH200-480GB", true),
    Product("B200", "B200-180GB", "NVIDIA-B200", true),
    Product("GB200", "GB200-186GB", "NVIDIA-GB200", true),
    Product("L4", "L4", "NVIDIA-L4", false),
    Product("L40", "L40", "NVIDIA-L40", false),
    Product("L40S", "L40S", "NVIDIA-L40S", false),
    Product("RTX-A4000", "RTX-A4000", "NVIDIA-RTX-A4000", false),
    Product("RTX-A5000", "RTX-A5000", "NVIDIA-RTX-A5000", false),
    Product("RTX-A6000", "RTX-A6000", "NVIDIA-RTX-A6000", false),
    Product("RTX-6000-ADA", "RTX-6000-ADA", "NVIDIA-RTX-6000-Ada-Generation", false),
    Product("RTX-3080", "RTX-3080", "NVIDIA-GeForce-RTX-3080", false),
    Product("RTX-3090", "RTX-3090", "NVIDIA-GeForce-RTX-3090", false),
    Product("RTX-4080", "RTX-4080", "NVIDIA-GeForce-RTX-4080", false),
    Product("RTX-4090", "RTX-4090", "NVIDIA-GeForce-RTX-4090", false),
    Product("RTX-5090", "RTX-5090", "NVIDIA-GeForce-RTX-5090", false),
    Product("RTX-PRO-6000", "RTX-PRO-6000", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", true),
];

/// A model's name without case, maker and blanks: `NVIDIA A100 80GB` and `a100-80gb` are one.
fn plain(model: &str) -> String {
    let upper = model.trim().to_uppercase().replace([' ', '_'], "-");
    upper.strip_prefix("NVIDIA-").map_or(upper.clone(), str::to_owned)
}

/// The labels of the cards of a model: a family, a variant, or a label itself. Empty if none is known.
///
/// With `mig`, only those that support MIG.
pub(crate) fn labels_of(model: &str, mig: bool) -> Vec<&'static str> {
    let wanted = plain(model);
    let is = |product: &&Product| {
        (product.0 == wanted || product.1 == wanted || plain(product.2) == wanted) && (!mig || product.3)
    };
    PRODUCTS.iter().filter(is).map(|product| product.2).collect()
}

/// The labels of all cards that support MIG.
pub(super) fn mig_labels() -> impl Iterator<Item = &'static str> {
    PRODUCTS.iter().filter(|product| product.3).map(|product| product.2)
}

/// The families, for messages.
pub(crate) fn families() -> Vec<&'static str> {
    let mut names: Vec<&str> = PRODUCTS.iter().map(|product| product.0).collect();
    names.dedup();
    names
}

/// A model as the driver's name of the product holds it: `A100` of `A100-80GB`, `RTX 4090` of `RTX-4090`.
pub(crate) fn short(model: &str) -> String {
    match models::find(model) {
        Some(found) if !found.model.name.ends_with("xx") => found.model.name.replace('-', " "),
        _ => model.trim().replace(['-', '_'], " "),
    }
}
