//! The images that task roles run in, and their names.

use super::prerequisites::Pool;
use super::role::{self, TaskRole};
use crate::document::{Entry, Node};
use crate::import::nodes::{entry, map, string};
use crate::openpai::converted;
use crate::source::Span;

/// The images: the job's own if all roles use the same, else one per name.
///
/// In a job that jobc wrote, the name encodes where the image was declared: `image_main` is the job's image, and a
/// name with a role's name is the role's.
pub(super) fn images(
    roles: Vec<TaskRole<'_>>,
    pool: &Pool<'_>,
    written_by_jobc: bool,
) -> (Vec<Entry>, Vec<Entry>) {
    let mut used: Vec<(&str, Node, Span)> = Vec::new();
    for (field, uri) in roles.iter().filter_map(|role| role.image) {
        let name = field.value.as_str().unwrap_or_default();
        if !used.iter().any(|(known, ..)| *known == name) {
            let node = pool.find("dockerimage", name).and_then(|found| found.node.get("uri"));
            let at = node.map_or(field.value.span, |node| node.span);
            used.push((name, string(at, uri), field.key_span));
        }
    }
    let short =
        |name: &str| image_name(name.strip_prefix("image_").filter(|_| written_by_jobc).unwrap_or(name));
    // Names that are equal after conversion to our characters get a number.
    let called = |name: &str| {
        let ours = short(name);
        let place = used.iter().position(|(known, ..)| *known == name).unwrap_or_default();
        if used[..place].iter().any(|(known, ..)| short(known) == ours) {
            format!("image-{place}")
        } else {
            ours
        }
    };
    let is_jobs = |name: &str| if written_by_jobc { name == "image_main" } else { used.len() == 1 };
    let mut named: Vec<&(&str, Node, Span)> = used.iter().filter(|(name, ..)| !is_jobs(name)).collect();
    let mut finished = Vec::with_capacity(roles.len());
    for role in roles {
        let image =
            role.image.filter(|(field, _)| !field.value.as_str().is_some_and(&is_jobs)).map(|(field, _)| {
                let name = field.value.as_str().unwrap_or_default();
                let at = field.value.span;
                if written_by_jobc && called(name) == role.ours {
                    let own = used.iter().find(|(known, ..)| *known == name).map(|(_, node, _)| node.clone());
                    named.retain(|(known, ..)| *known != name);
                    return own.unwrap_or_else(|| string(at, name));
                }
                map(at, vec![entry("use", field.key_span, string(at, called(name)))])
            });
        finished.push(role::finish(role, image));
    }
    let mut images: Vec<Entry> = used
        .iter()
        .filter(|(name, ..)| is_jobs(name))
        .map(|(_, node, key)| entry("image", *key, node.clone()))
        .collect();
    if let Some((.., first)) = named.first() {
        let entries = named.iter().map(|(name, node, key)| entry(called(name), *key, node.clone())).collect();
        images.push(entry("images", *first, map(*first, entries)));
    }
    (images, finished)
}

/// The name of an image prerequisite, converted to one of ours.
fn image_name(name: &str) -> String {
    converted(name, 32, true).unwrap_or_else(|| "image".to_owned())
}
