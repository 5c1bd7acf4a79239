//! Software bills of materials of images: `CycloneDX` 1.6 as JSON.
//!
//! A document depends on nothing but the image, its name and the version of jobc: the same image gives the same bytes.
//! A test holds documents against the published schema.

mod purl;

use jobc_schema::digest::Digest;
use jobc_schema::reference::Reference;
use serde_json::{Value, json};

use crate::packages::{Distribution, Inventory, License, Package};
use crate::store::Image;

/// What a document is about.
pub struct Subject<'a> {
    /// The name of the image, if it has one.
    pub name: Option<&'a Reference>,
    /// The digest that the name stands for: of the image, or of a list that has it.
    pub digest: &'a Digest,
    /// The image.
    pub image: &'a Image,
    /// The image that it was built on, if the store has it, with its name.
    pub base: Option<(&'a Digest, Option<&'a Reference>)>,
    /// What is installed in it.
    pub inventory: &'a Inventory,
    /// The version of jobc.
    pub version: &'a str,
}

/// The document.
pub fn document(subject: &Subject<'_>) -> String {
    let Subject { image, inventory, .. } = subject;
    let root = container(subject.name, subject.digest, image);
    let mut components: Vec<Value> = inventory.distribution.iter().map(operating_system).collect();
    components.extend(inventory.packages.iter().map(|each| package(each, inventory.distribution.as_ref())));
    let listed: Vec<&Value> = components.iter().map(|component| &component["bom-ref"]).collect();
    let mut metadata = json!({
        "tools": {"components": [{"type": "application", "name": "jobc", "version": subject.version}]},
        "component": with_layers(root.clone(), subject),
        "properties": gaps(inventory),
    });
    // The time when the image was made: a document made later says the same.
    if let Some(created) = image.config.created.as_ref().filter(|created| is_timestamp(created)) {
        metadata["timestamp"] = created.as_str().into();
    }
    let document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": serial_number(&format!("{} {root} {}", image.descriptor.digest, subject.version)),
        "version": 1,
        "metadata": metadata,
        "components": components,
        "dependencies": [{"ref": root["bom-ref"], "dependsOn": listed}],
    });
    format!("{document:#}\n")
}

/// The image itself, or its base.
fn container(name: Option<&Reference>, digest: &Digest, image: &Image) -> Value {
    let platform = image.platform();
    let mut component = of_image(name, digest);
    if let Some(name) = name {
        let purl = purl::image(name, digest, &platform.architecture);
        component["purl"] = purl.into();
    }
    component
}

fn of_image(name: Option<&Reference>, digest: &Digest) -> Value {
    let shown = name.map_or_else(|| digest.to_string(), Reference::familiar);
    json!({"type": "container", "bom-ref": format!("image:{digest}"), "name": shown, "version": digest.to_string()})
}

/// Adds what the image was made of.
fn with_layers(mut component: Value, subject: &Subject<'_>) -> Value {
    let manifest = &subject.image.manifest;
    let property = |name: &str, value: &str| json!({"name": format!("dev.jobc.{name}"), "value": value});
    let mut properties = vec![
        property("manifest", &subject.image.descriptor.digest.to_string()),
        property("config", &manifest.config.digest.to_string()),
        property("platform", &subject.image.platform().to_string()),
    ];
    properties.extend(manifest.layers.iter().map(|layer| property("layer", &layer.digest.to_string())));
    component["properties"] = properties.into();
    if let Some((base, name)) = subject.base {
        component["pedigree"] = json!({"ancestors": [of_image(name, base)]});
    }
    component
}

fn operating_system(distribution: &Distribution) -> Value {
    let Distribution { id, version, name } = distribution;
    let mut component = json!({
        "type": "operating-system",
        "bom-ref": format!("os:{id}@{}", version.as_deref().unwrap_or_default()),
        "name": id,
    });
    if let Some(version) = version {
        component["version"] = version.as_str().into();
    }
    if let Some(name) = name {
        component["description"] = name.as_str().into();
    }
    component
}

fn package(package: &Package, distribution: Option<&Distribution>) -> Value {
    let purl = purl::package(package, distribution);
    let mut component = json!({
        "type": "library",
        // A package can be installed in several environments.
        "bom-ref": format!("{purl}#{}", package.path),
        "name": package.name,
        "version": package.version,
    });
    if let Some(license) = &package.license {
        component["licenses"] = match license {
            License::Name(name) => json!([{"license": {"name": name}}]),
            License::Expression(expression) => json!([{"expression": expression}]),
        };
    }
    component["purl"] = purl.into();
    component["evidence"] = json!({"occurrences": [{"location": format!("/{}", package.path)}]});
    component["properties"] = json!([{"name": "dev.jobc.layer", "value": package.layer.to_string()}]);
    component
}

/// What is not in the document.
fn gaps(inventory: &Inventory) -> Vec<Value> {
    let known =
        "packages of dpkg, apk, Python and conda; not npm, Go, Rust and files without a package manager";
    let note = |text: &str| json!({"name": "dev.jobc.scope", "value": text});
    std::iter::once(known).chain(inventory.gaps.iter().map(String::as_str)).map(note).collect()
}

/// An identifier made of a text (RFC 9562, version 8).
fn serial_number(text: &str) -> String {
    let digest = Digest::of(text.as_bytes());
    let hex = digest.hex();
    format!("urn:uuid:{}-{}-8{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

/// Whether a text is a time as documents have it (RFC 3339).
fn is_timestamp(text: &str) -> bool {
    let form = "0000-00-00T00:00:00";
    let is_like =
        |(found, form): (char, char)| if form == '0' { found.is_ascii_digit() } else { found == form };
    let zone = text.get(form.len()..).unwrap_or_default();
    let zone =
        zone.strip_prefix('.').map_or(zone, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    text.len() > form.len() && text.chars().zip(form.chars()).all(is_like) && zone == "Z"
}

#[cfg(test)]
mod tests;
