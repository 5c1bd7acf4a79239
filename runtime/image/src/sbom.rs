//! Software bills of materials of images: `CycloneDX` 1.5 as JSON, by the library of its makers.
//!
//! A document depends on nothing but the image, its name and the version of jobc: the same image gives the same bytes.
//! A test holds documents against the published schema.

mod purl;

use cyclonedx_bom::models::component::{
    Classification, ComponentEvidence, Occurrence, Occurrences, Pedigree,
};
use cyclonedx_bom::models::dependency::{Dependencies, Dependency};
use cyclonedx_bom::models::license::{LicenseChoice, Licenses};
use cyclonedx_bom::models::property::{Properties, Property};
use cyclonedx_bom::models::tool::Tools;
use cyclonedx_bom::prelude::{
    Bom, Component, Components, DateTime, Metadata, NormalizedString, SpdxExpression, SpecVersion, UrnUuid,
};
use jobc_schema::digest::Digest;
use jobc_schema::reference::Reference;

use crate::packages::{Distribution, Inventory, License, Package};
use crate::store::Image;

/// What a document is about.
pub struct Subject<'a> {
    /// The name of the image, if it has one.
    pub name: Option<&'a Reference>,
    /// The digest of the name: the image's, or that of an index that contains it.
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
    let mut components: Vec<Component> = inventory.distribution.iter().map(operating_system).collect();
    components.extend(inventory.packages.iter().map(|each| package(each, inventory.distribution.as_ref())));
    let root = container(subject);
    let name = root.bom_ref.clone().unwrap_or_default();
    let identity = format!("{} {name} {} {}", image.descriptor.digest, root.name, subject.version);
    let listed = components.iter().filter_map(|component| component.bom_ref.clone()).collect();
    let tool = Component::new(Classification::Application, "jobc", subject.version, None);
    let bom = Bom {
        version: 1,
        spec_version: SpecVersion::V1_5,
        serial_number: Some(UrnUuid(serial_number(&identity))),
        metadata: Some(Metadata {
            // The creation time of the image, so that a later document is the same.
            timestamp: image.config.created.clone().and_then(|created| DateTime::try_from(created).ok()),
            tools: Some(Tools::Object { services: None, components: Some(Components(vec![tool])) }),
            component: Some(root),
            properties: Some(Properties(gaps(inventory))),
            ..Metadata::default()
        }),
        components: Some(Components(components)),
        dependencies: Some(Dependencies(vec![Dependency { dependency_ref: name, dependencies: listed }])),
        services: None,
        external_references: None,
        compositions: None,
        properties: None,
        vulnerabilities: None,
        signature: None,
        annotations: None,
        formulation: None,
    };
    let mut out = Vec::new();
    bom.output_as_json_v1_5(&mut out).expect("the fields are those of version 1.5");
    out.push(b'\n');
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// The image itself, with its layers and base.
fn container(subject: &Subject<'_>) -> Component {
    let Subject { image, .. } = subject;
    let platform = image.platform();
    let mut component = of_image(subject.name, subject.digest);
    component.purl =
        subject.name.and_then(|name| purl::image(name, subject.digest, &platform.architecture).parse().ok());
    let mut properties = vec![
        property("manifest", &image.descriptor.digest.to_string()),
        property("config", &image.manifest.config.digest.to_string()),
        property("platform", &platform.to_string()),
    ];
    properties.extend(image.manifest.layers.iter().map(|layer| property("layer", &layer.digest.to_string())));
    component.properties = Some(Properties(properties));
    component.pedigree = subject.base.map(|(base, name)| Pedigree {
        ancestors: Some(Components(vec![of_image(name, base)])),
        descendants: None,
        variants: None,
        commits: None,
        patches: None,
        notes: None,
    });
    component
}

fn of_image(name: Option<&Reference>, digest: &Digest) -> Component {
    let shown = name.map_or_else(|| digest.to_string(), Reference::familiar);
    let reference = format!("image:{digest}");
    Component::new(Classification::Container, &shown, &digest.to_string(), Some(reference))
}

fn operating_system(distribution: &Distribution) -> Component {
    let Distribution { id, version, name } = distribution;
    let reference = format!("os:{id}@{}", version.as_deref().unwrap_or_default());
    Component {
        version: version.as_deref().map(NormalizedString::new),
        description: name.as_deref().map(NormalizedString::new),
        ..Component::new(Classification::OperatingSystem, id, "", Some(reference))
    }
}

fn package(package: &Package, distribution: Option<&Distribution>) -> Component {
    let purl = purl::package(package, distribution);
    // A package can be installed in several environments.
    let reference = format!("{purl}#{}", package.path);
    let occurrences = Occurrences(vec![Occurrence::new(&format!("/{}", package.path))]);
    Component {
        licenses: package.license.as_ref().map(|found| Licenses(vec![license(found)])),
        purl: purl.parse().ok(),
        evidence: Some(ComponentEvidence {
            occurrences: Some(occurrences),
            licenses: None,
            copyright: None,
            callstack: None,
            identity: None,
        }),
        properties: Some(Properties(vec![property("layer", &package.layer.to_string())])),
        ..Component::new(Classification::Library, &package.name, &package.version, Some(reference))
    }
}

/// The license of a package; metadata can have expressions that are none.
fn license(license: &License) -> LicenseChoice {
    let (License::Name(text) | License::Expression(text)) = license;
    let expression =
        matches!(license, License::Expression(_)).then(|| SpdxExpression::try_from(text.clone()));
    match expression {
        Some(Ok(expression)) => LicenseChoice::Expression(expression),
        _ => LicenseChoice::license(text),
    }
}

fn property(name: &str, value: &str) -> Property {
    Property::new(format!("dev.jobc.{name}"), value)
}

/// What is not in the document.
fn gaps(inventory: &Inventory) -> Vec<Property> {
    let known =
        "packages of dpkg, apk, Python and conda; not npm, Go, Rust and files without a package manager";
    let note = |text: &str| property("scope", text);
    std::iter::once(known).chain(inventory.gaps.iter().map(String::as_str)).map(note).collect()
}

/// An identifier derived from a text (RFC 9562, version 8).
fn serial_number(text: &str) -> String {
    let digest = Digest::of(text.as_bytes());
    let hex = digest.hex();
    format!("urn:uuid:{}-{}-8{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

#[cfg(test)]
mod tests;
