//! Images: the image of every role, and the source of each image.

use std::fmt::Write as _;

use indexmap::IndexMap;
use jobc_schema::image::{HostImage, Image, ImageBlock};
use jobc_schema::plan::{ImagePlan, ImageSource};
use jobc_schema::{Pointer, Reference};
use sha2::{Digest, Sha256};

use super::context::Context;
use super::env::report_reserved;
use super::image_build::{self, ResolvedBuild};
use super::scope;
use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};
use crate::expression::Names;
use crate::full_width;
use crate::suggest;

/// The name of the job's own image in the plan.
const MAIN: &str = "main";

/// The images that roles use, and the name of each role's image, by the role's index.
///
/// Images that no role uses are not part of the plan.
pub(super) fn resolve_images(
    context: &Context<'_>,
    sink: &mut Sink,
) -> (IndexMap<String, ImagePlan>, Vec<Option<String>>) {
    let job = context.job;
    let names = scope::early_names(context);
    let groups = &context.variant.groups;
    if let (Some(_), Some(_)) = (&job.image, job.images.get(MAIN)) {
        sink.push(
            Diagnostic::error(codes::IMAGE_FORM, "two images are called `main`")
                .at_key(&Pointer::ROOT.keys(["images", MAIN]), "")
                .at_key(&Pointer::ROOT.key("image"), "the job's own image has this name")
                .note("rename the one under `images`"),
        );
    }
    let mut plans: IndexMap<String, ImagePlan> = IndexMap::new();
    let mut image_of = Vec::with_capacity(job.roles.len());
    // Combinations of a role with the same image share it under the role's name.
    let mut shared: IndexMap<&str, (String, &Image)> = IndexMap::new();
    let mut reported_none = false;
    for (role_name, role) in &job.roles {
        let own = Pointer::ROOT.keys(["roles", role_name, "image"]);
        let (image, at) = match (&role.image, &job.image) {
            (Some(image), _) => (image, own),
            (None, Some(image)) => (image, Pointer::ROOT.key("image")),
            (None, None) => {
                // One finding for all roles: usually the job has no image at all.
                if !reported_none {
                    reported_none = true;
                    sink.push(no_image(context, role_name));
                }
                image_of.push(None);
                continue;
            }
        };
        let name = match used_name(image) {
            Some(wanted) => {
                let Some(name) = find_named(context, wanted, &at.key("use"), sink) else {
                    image_of.push(None);
                    continue;
                };
                name
            }
            None if role.image.is_none() => MAIN.to_owned(),
            None => match groups.get(role_name) {
                None => own_name(context, role_name),
                Some(group) => match shared.get(group.role.as_str()) {
                    Some((name, first)) if *first == image => name.clone(),
                    Some(_) => own_name(context, role_name),
                    None => {
                        let name = own_name(context, &group.role);
                        shared.insert(&group.role, (name.clone(), image));
                        name
                    }
                },
            },
        };
        if !plans.contains_key(&name) {
            let (image, at) = match used_name(image) {
                Some(wanted) if wanted == MAIN && !job.images.contains_key(MAIN) => {
                    (job.image.as_ref().unwrap_or(image), Pointer::ROOT.key("image"))
                }
                Some(wanted) => (&job.images[wanted], Pointer::ROOT.keys(["images", wanted])),
                None => (image, at),
            };
            let of_group;
            let names = if groups.get(role_name).is_some() {
                of_group = scope::early_names_of_role(context, role_name);
                &of_group
            } else {
                &names
            };
            let plan = resolve_image(context, names, &name, image, &at, sink);
            plans.insert(name.clone(), plan);
        }
        image_of.push(Some(name));
    }
    check_unused(context, &names, &plans, sink);
    (plans, image_of)
}

/// Checks only the references of images that no role uses.
fn check_unused(context: &Context<'_>, names: &Names, plans: &IndexMap<String, ImagePlan>, sink: &mut Sink) {
    let job = context.job;
    let main = job.image.iter().map(|image| (MAIN, image, Pointer::ROOT.key("image")));
    let others =
        job.images.iter().map(|(name, image)| (name.as_str(), image, Pointer::ROOT.keys(["images", name])));
    for (_, image, at) in main.chain(others).filter(|(name, ..)| !plans.contains_key(*name)) {
        let mut own = Sink::new();
        match image {
            Image::Reference(text) if text == "host" || is_path(text) => {}
            Image::Reference(text) => check_reference(text, &at, &mut own),
            Image::Block(block) => {
                image_build::Build::new(context, names, block, &at).check_references(&mut own);
            }
        }
        own.finish()
            .into_iter()
            .filter(|found| found.code == codes::IMAGE_REFERENCE)
            .for_each(|found| sink.push(found));
    }
}

/// The name under `images` that a block selects.
fn used_name(image: &Image) -> Option<&str> {
    if let Image::Block(block) = image { block.use_.as_deref() } else { None }
}

/// The name of an image that only one role uses: the role's, or an unused one.
fn own_name(context: &Context<'_>, role: &str) -> String {
    let taken = |name: &str| name == MAIN || context.job.images.contains_key(name);
    let mut name = role.to_owned();
    while taken(&name) || (name != role && context.job.roles.contains_key(&name)) {
        name.push_str("-own");
    }
    name
}

fn no_image(context: &Context<'_>, role: &str) -> Diagnostic {
    let diagnostic = Diagnostic::error(codes::IMAGE_NONE, format!("the role `{role}` has no image"))
        .at_key(&Pointer::ROOT.keys(["roles", role]), "");
    let images = &context.job.images;
    if images.is_empty() {
        return diagnostic.note("write the job's `image`, as in `image: python:3.12-slim`, or `image: host` to run on the files of the host");
    }
    let first = images.keys().next().map_or("", String::as_str);
    let names = suggest::list(images.keys().map(String::as_str));
    diagnostic.note(format!("select one of `images` ({names}) with `image: {{use: {first}}}`"))
}

fn find_named(context: &Context<'_>, wanted: &str, at: &Pointer, sink: &mut Sink) -> Option<String> {
    let job = context.job;
    let is_main = wanted == MAIN && job.image.as_ref().is_some_and(|image| used_name(image).is_none());
    let Some(image) = job.images.get(wanted) else {
        if is_main {
            return Some(MAIN.to_owned());
        }
        let names = || job.images.keys().map(String::as_str);
        let diagnostic =
            Diagnostic::error(codes::IMAGE_UNKNOWN, format!("unknown image `{wanted}` in `images`"));
        sink.push(match suggest::nearest(wanted, names()) {
            Some(near) => diagnostic.suggest_value(at, wanted, near),
            None => diagnostic.at(at, "").note(format!("known: {}", suggest::list(names()))),
        });
        return None;
    };
    if used_name(image).is_some() {
        sink.push(
            Diagnostic::error(codes::IMAGE_FORM, "a named image cannot use another named image")
                .at_key(&Pointer::ROOT.keys(["images", wanted, "use"]), "")
                .note("define the image here; roles select it with `use`"),
        );
        return None;
    }
    Some(wanted.to_owned())
}

fn resolve_image(
    context: &Context<'_>,
    names: &Names,
    name: &str,
    image: &Image,
    at: &Pointer,
    sink: &mut Sink,
) -> ImagePlan {
    let declared_at = at.clone();
    let block = match image {
        Image::Reference(reference) if reference == "host" => {
            let reference = reference.clone();
            let source = ImageSource::host(&HostImage::default());
            return ImagePlan { source, reference, declared_at };
        }
        Image::Reference(path) if is_path(path) => {
            let (path, reference) = (path.clone(), path.clone());
            return ImagePlan { source: ImageSource::File { path }, reference, declared_at };
        }
        Image::Reference(reference) => {
            check_reference(reference, at, sink);
            let reference = locked(context, reference.clone(), at, sink);
            return ImagePlan { source: ImageSource::Reference {}, reference, declared_at };
        }
        Image::Block(block) => block,
    };
    if let Some(host) = &block.host {
        for (index, name) in host.env.iter().enumerate() {
            report_reserved(name, Location::key(&at.key("host").key("env").index(index)), sink);
        }
        return ImagePlan { source: ImageSource::host(host), reference: "host".to_owned(), declared_at };
    }
    check_context(block, at, sink);
    let build = image_build::Build::new(context, names, block, at);
    if let Some(from) = &block.from
        && is_only_from(block)
    {
        let reference = build.reference(from, &at.key("from"), sink);
        let reference = locked(context, reference, &at.key("from"), sink);
        return ImagePlan { source: ImageSource::Reference {}, reference, declared_at };
    }
    let ResolvedBuild { source, texts } = build.resolve(sink);
    let digest = digest(&source, &texts);
    // Without the variant's number: jobs of a matrix share their builds.
    let reference = format!("{}-{name}:{digest}", context.job.name);
    ImagePlan { source, reference, declared_at }
}

/// An image's name with its digest in `jobc.lock`. The tag is kept for users, and for checks that
/// depend on it.
pub(super) fn locked(context: &Context<'_>, name: String, at: &Pointer, sink: &mut Sink) -> String {
    match context.lock.digest(&name, Location::value(at), sink) {
        Some(digest) => format!("{name}@{digest}"),
        None => name,
    }
}

/// Twelve hexadecimal digits that change with the build: a digest of the source and its files.
fn digest(source: &ImageSource, texts: &[String]) -> String {
    let mut hash = Sha256::new();
    hash.update(serde_json::to_string(source).unwrap_or_default());
    for text in texts {
        // The same number of bytes on every platform.
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hash.finalize().iter().take(6).fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

fn is_only_from(block: &ImageBlock) -> bool {
    let only = ImageBlock { from: block.from.clone(), args: block.args.clone(), ..ImageBlock::default() };
    *block == only
}

/// Reports an unused `context`: only a Dockerfile build has one.
fn check_context(block: &ImageBlock, at: &Pointer, sink: &mut Sink) {
    if block.dockerfile.is_none() && block.context.is_some() {
        sink.push(
            Diagnostic::error(codes::IMAGE_FORM, "`context` does not go with `from`")
                .at_key(&at.key("context"), "")
                .at_key(&at.key("from"), "beside this")
                .note("an image built with `from` sees the job file's directory; write the directory into `copy`"),
        );
    }
}

/// Whether the text of an image is a path: no reference begins like one.
fn is_path(text: &str) -> bool {
    ["./", "../", "/"].iter().any(|begin| text.starts_with(begin))
}

/// Reports a text that is not a valid image reference.
pub(super) fn check_reference(text: &str, at: &Pointer, sink: &mut Sink) {
    let Err(error) = text.parse::<Reference>() else { return };
    let note = if is_path(text) {
        "a path can only be an image on its own, as `image: ./rootfs.tar.gz`; to build on it, give it a name with `jobc image import`".to_owned()
    } else if text.contains("://") {
        "write it without the scheme in front".to_owned()
    } else {
        error.help()
    };
    // For a path, the whole text is wrong.
    let range = if is_path(text) { 0..text.len() } else { error.span.clone() };
    let mut diagnostic = Diagnostic::error(codes::IMAGE_REFERENCE, error.finding())
        .at_place(Location::inside(at, text, range), "")
        .note(note);
    if let Some(mended) = repair(text) {
        let place = Location::inside(at, text, 0..text.len());
        diagnostic = diagnostic.fix(format!("write `{mended}`"), place, mended, Safety::Safe);
    }
    sink.push(diagnostic);
}

/// The intended reference of one with a URL scheme, with full-width characters, or with capital letters in its name.
fn repair(text: &str) -> Option<String> {
    let ascii = full_width::in_ascii(text);
    let text = ascii.as_deref().unwrap_or(text);
    let bare = text.split_once("://").map_or(text, |(_, bare)| bare);
    let (name, digest) = bare.split_at(bare.find('@').unwrap_or(bare.len()));
    let tag = name.rfind(':').filter(|at| !name[*at..].contains('/')).unwrap_or(name.len());
    let mended = format!("{}{}{digest}", name[..tag].to_ascii_lowercase(), &name[tag..]);
    ((ascii.is_some() || mended != text) && !is_path(bare) && mended.parse::<Reference>().is_ok())
        .then_some(mended)
}
