//! Finds an image in the store by the name on the command line.

use jobc_compiler::suggest;
use jobc_image::store::NamedImage;
use jobc_image::{Platform, Reference, Store};
use jobc_schema::reference::ReferenceError;
use jobc_sys::error::{Error, Kind};

use crate::runtime::commands::jobs::{Failure, Result};

/// The platform of `--platform`, by default that of this host.
pub(super) fn platform(option: Option<&str>) -> Result<Platform> {
    option.map_or_else(|| Ok(Platform::here()), str::parse).map_err(Failure::usage_error)
}

/// A name that an image gets.
pub(super) fn new_name(text: &str) -> Result<Reference> {
    let name: Reference = text.parse().map_err(|error: ReferenceError| Failure::usage_error(error.into()))?;
    if name.digest.is_some() {
        let error = Error::new(Kind::Config, format!("invalid tag `{name}`: a tag cannot have a digest"));
        return Err(Failure::usage_error(error.help("use the form NAME[:TAG]")));
    }
    Ok(name)
}

/// The image that a word names: a reference, a digest, or a prefix of one.
pub(super) fn find(store: &Store, word: &str) -> Result<NamedImage> {
    let images = store.images()?;
    if let Some(found) = by_digest(&images, word)? {
        return Ok(found.clone());
    }
    let reference = match word.parse::<Reference>() {
        Ok(reference) => reference,
        Err(error) => return Err(Failure::usage_error(error.into())),
    };
    if let Some(descriptor) = store.find(&reference)? {
        let has_name = |image: &&NamedImage| {
            image.name.as_deref() == Some(&*reference.to_string())
                || image.descriptor.digest == descriptor.digest
        };
        let shared = images.iter().find(has_name).and_then(|image| image.shared.clone());
        return Ok(NamedImage {
            name: reference.tag.is_some().then(|| reference.to_string()),
            descriptor,
            shared,
        });
    }
    let known: Vec<String> = images.iter().filter_map(|image| familiar(image.name.as_deref())).collect();
    let error =
        Error::new(Kind::State, format!("the image `{}` is not in the image store", reference.familiar()));
    Err(Failure::usage_error(
        match suggest::nearest(&reference.familiar(), known.iter().map(String::as_str)) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None if known.is_empty() => {
                error.help(format!("pull it with `jobc image pull {}`", reference.familiar()))
            }
            None => error.help("`jobc image ls` lists the images"),
        },
    ))
}

/// The image with this digest prefix of at least four digits.
fn by_digest<'a>(images: &'a [NamedImage], word: &str) -> Result<Option<&'a NamedImage>> {
    let digits = word.strip_prefix("sha256:").unwrap_or(word);
    if digits.len() < 4 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(None);
    }
    let mut found: Vec<&NamedImage> =
        images.iter().filter(|image| image.descriptor.digest.hex().starts_with(digits)).collect();
    found.dedup_by_key(|image| &image.descriptor.digest);
    match found[..] {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => {
            let error = Error::new(Kind::State, format!("{} images begin with `{digits}`", found.len()));
            Err(Failure::usage_error(error.help("write more digits of the digest, or the name of the image")))
        }
    }
}

/// A name in its short form.
pub(super) fn familiar(name: Option<&str>) -> Option<String> {
    let name = name?;
    Some(name.parse::<Reference>().map_or_else(|_| name.to_owned(), |reference| reference.familiar()))
}
