//! `gpu: all`: replaced by the number of GPUs of the host, if the host is known.
//!
//! The number is put into the document, so that ranks, processes and indexes follow from it as if the file had it.

use indexmap::IndexMap;
use jobc_schema::Pointer;
use jobc_schema::gpu::Vendor;
use jobc_schema::target::TargetGpus;

use super::{child, entries};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Entry, Node, Value};
use crate::expand::Variant;

/// The vendors whose GPUs jobs on a host can have, in the order in which they are looked for.
const VENDORS: [Vendor; 3] = [Vendor::Nvidia, Vendor::Amd, Vendor::Intel];

/// The variant with the number of GPUs of the host for each role that requests all of them; `None` if no role does.
pub fn count_all(
    variant: &Variant,
    look: &dyn Fn() -> Option<TargetGpus>,
    sink: &mut Sink,
) -> Option<Variant> {
    let roles = variant.document.root.get("roles")?;
    let wants = |role: &&Entry| {
        let gpu = role.value.get("resources").and_then(|resources| resources.get("gpu"));
        gpu.and_then(Node::as_str) == Some("all")
    };
    let names: Vec<String> = roles.entries().iter().filter(wants).map(|role| role.key.clone()).collect();
    if names.is_empty() {
        return None;
    }
    let host = look()?;
    let cards = host.cards.as_ref()?;
    // A partitioned card serves only slices; an empty map means that the card is not partitioned.
    let whole = |vendor: Vendor| -> u32 {
        let cards = cards
            .iter()
            .filter(|card| card.vendor == vendor && card.mig.as_ref().is_none_or(IndexMap::is_empty));
        cards.map(|card| card.count.unwrap_or(1)).sum()
    };
    let found = VENDORS.into_iter().map(|vendor| (vendor, whole(vendor))).find(|(_, count)| *count > 0);
    let Some((vendor, count)) = found else {
        for name in &names {
            let at = Pointer::ROOT.keys(["roles", name, "resources", "gpu"]);
            let which = if host.found { "this host" } else { "the host" };
            sink.push(
                Diagnostic::error(
                    codes::GPU_ALL_NONE,
                    format!("role `{name}` requests all GPUs, and {which} has none"),
                )
                .at(&at, "")
                .note("run the job on a host with GPUs, or without them by `jobc run --no-gpu`"),
            );
        }
        return None;
    };
    let mut variant = variant.clone();
    for role in entries(child(&mut variant.document.root, "roles")?) {
        if !names.contains(&role.key) {
            continue;
        }
        let gpu = child(&mut role.value, "resources").and_then(|resources| child(resources, "gpu"));
        if let Some(gpu) = gpu {
            gpu.value = request(gpu, vendor, count);
        }
    }
    variant.all_gpus = names.into_iter().collect();
    Some(variant)
}

/// This many GPUs, as a job file requests them; NVIDIA's need no block.
fn request(gpu: &Node, vendor: Vendor, count: u32) -> Value {
    let count = Value::Number { number: count.into(), text: count.to_string() };
    if vendor == Vendor::Nvidia {
        return count;
    }
    let entry = |key: &str, value: Value| Entry {
        key: key.to_owned(),
        key_span: gpu.span,
        value: Node { span: gpu.span, value },
    };
    Value::Mapping(vec![entry("count", count), entry("vendor", Value::String(vendor.as_str().to_owned()))])
}
