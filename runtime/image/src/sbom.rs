//! Software bills of materials of images: `CycloneDX` 1.5 as JSON.
//!
//! A document depends on nothing but the image, its name and the version of jobc: the same image gives the same bytes.
//! A test holds documents against the published schema.

mod purl;

use jobc_schema::digest::Digest;
use jobc_schema::reference::Reference;
use serde_json::{Value, json};

use crate::packages::{Distribution, Inventory, License, Package};
use crate::store::Image;

/// The subject of a document.
pub struct Subject<'a> {
    /// The name of the image, if it has one.
    pub name: Option<&'a Reference>,
    /// The digest of the name: the image's, or that of an index that contains it.
    pub digest: &'a Digest,
    /// The image.
    pub image: &'a Image,
    /// The image that it was built on, if the store has it, with its name.
    pub base: Option<(&'a Digest, Option<&'a Reference>)>,
    /// The packages installed in it.
    pub inventory: &'a Inventory,
    /// The version of jobc.
    pub version: &'a str,
}

/// The document.
pub fn document(subject: &Subject<'_>) -> String {
    let Subject { image, inventory, .. } = subject;
    let distribution = inventory.distribution.as_ref();
    let mut components: Vec<Value> = distribution.map(operating_system).into_iter().collect();
    components.extend(inventory.packages.iter().map(|each| package(each, distribution)));
    let listed: Vec<&Value> = components.iter().map(|component| &component["bom-ref"]).collect();
    let root = container(subject);
    let name = format!("image:{}", subject.digest);
    let identity = format!(
        "{} {name} {} {}",
        image.descriptor.digest,
        shown(subject.name, subject.digest),
        subject.version
    );
    // The creation time of the image, so that a later document is the same.
    let created =
        image.config.created.as_deref().filter(|created| created.parse::<jiff::Timestamp>().is_ok());
    let document = present(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "serialNumber": serial_number(&identity),
        "metadata": present(json!({
            "timestamp": created,
            "tools": {"components": [{"type": "application", "name": "jobc", "version": subject.version}]},
            "component": root,
            "properties": gaps(inventory),
        })),
        "components": components,
        "dependencies": [{"ref": name, "dependsOn": listed}],
    }));
    format!("{document:#}\n")
}

/// The image itself, with its layers and base.
fn container(subject: &Subject<'_>) -> Value {
    let Subject { image, name, digest, .. } = subject;
    let platform = image.platform();
    let mut component = of_image(*name, digest);
    component["purl"] = name.map(|name| purl::image(name, digest, &platform.architecture)).into();
    component["pedigree"] =
        subject.base.map(|(base, name)| json!({"ancestors": [of_image(name, base)]})).into();
    let mut properties = vec![
        property("manifest", &image.descriptor.digest.to_string()),
        property("config", &image.manifest.config.digest.to_string()),
        property("platform", &platform.to_string()),
    ];
    properties.extend(image.manifest.layers.iter().map(|layer| property("layer", &layer.digest.to_string())));
    component["properties"] = properties.into();
    present(component)
}

fn of_image(name: Option<&Reference>, digest: &Digest) -> Value {
    json!({
        "type": "container",
        "bom-ref": format!("image:{digest}"),
        "name": shown(name, digest),
        "version": digest.to_string(),
    })
}

fn shown(name: Option<&Reference>, digest: &Digest) -> String {
    name.map_or_else(|| digest.to_string(), Reference::familiar)
}

fn operating_system(distribution: &Distribution) -> Value {
    let Distribution { id, version, name } = distribution;
    present(json!({
        "type": "operating-system",
        "bom-ref": format!("os:{id}@{}", version.as_deref().unwrap_or_default()),
        "name": id,
        "version": version,
        "description": name,
    }))
}

fn package(package: &Package, distribution: Option<&Distribution>) -> Value {
    let purl = purl::package(package, distribution);
    present(json!({
        "type": "library",
        // A package can be installed in several environments.
        "bom-ref": format!("{purl}#{}", package.path),
        "name": package.name,
        "version": package.version,
        "licenses": package.license.as_ref().map(|found| [license(found)]),
        "purl": purl,
        "properties": [property("layer", &package.layer.to_string())],
        "evidence": {"occurrences": [{"location": format!("/{}", package.path)}]},
    }))
}

/// The license of a package; metadata can have expressions that are not valid.
fn license(license: &License) -> Value {
    match license {
        License::Expression(text) if spdx::Expression::parse(text).is_ok() => json!({"expression": text}),
        License::Name(text) | License::Expression(text) => json!({"license": {"name": text}}),
    }
}

fn property(name: &str, value: &str) -> Value {
    json!({"name": format!("dev.jobc.{name}"), "value": value})
}

/// Reasons why the document is incomplete.
fn gaps(inventory: &Inventory) -> Vec<Value> {
    let known =
        "packages of dpkg, apk, Python and conda; not npm, Go, Rust and files without a package manager";
    std::iter::once(known)
        .chain(inventory.gaps.iter().map(String::as_str))
        .map(|text| property("scope", text))
        .collect()
}

/// The fields of an object that have a value.
fn present(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

/// An identifier derived from a text (RFC 9562, version 8).
fn serial_number(text: &str) -> String {
    let digest = Digest::of(text.as_bytes());
    let hex = digest.hex();
    format!("urn:uuid:{}-{}-8{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

#[cfg(test)]
mod tests;
