//! Attributes that only several layers together define: an image is its layers applied one after the other, but an
//! overlay reads each separately.
//!
//! A layer need not have an entry for the parent directories of its files. Applied to the layers below, such a
//! directory keeps its attributes; as a layer of an overlay it hides the owner, mode and times from a lower layer. And
//! a hard link may name a file of a lower layer. If an image needs it, one more layer on top, the seam, has those
//! directories and links with their final attributes, and nothing else. Most images need none.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::partial::PartialDirectory;
use super::sync;
use super::unpacker::Unpacker;
use jobc_container::archive::tree::LayerSummary;
use jobc_container::root::layers::copy::copy_attributes;
use jobc_container::root::layers::{LayerEntry, Layers};
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind, Result};

type Names = Vec<Vec<u8>>;

/// Writes what a layer leaves to those below it; bytes of paths as numbers, since they need be no text.
pub(super) fn write_dependencies(directory: &Path, left: &LayerSummary) -> io::Result<()> {
    let mut file = io::BufWriter::new(File::create(directory.join("left.json"))?);
    serde_json::to_writer(&mut file, &(&left.implied_directories, &left.external_links))?;
    io::Write::flush(&mut file)
}

fn read_dependencies(directory: &Path) -> io::Result<LayerSummary> {
    let file = io::BufReader::new(File::open(directory.join("left.json"))?);
    let (implied, borrowed) = serde_json::from_reader(file)?;
    Ok(LayerSummary { implied_directories: implied, external_links: borrowed, skipped_devices: Vec::new() })
}

/// The directories of an image's layers, lowest first, and its seam; `None` if one of them does not exist.
pub(super) fn directories(of: &Unpacker<'_>) -> Result<Option<Vec<PathBuf>>> {
    if !of.missing().is_empty() {
        return Ok(None);
    }
    let mut directories = layer_directories(of);
    let lefts = dependencies(of)?;
    if may_need_merge(&lefts) {
        let Some(place) = of.find_complete(&merge_name(of)) else { return Ok(None) };
        // Without files it reports that none are needed.
        directories.extend(Some(place.join("files")).filter(|files| files.is_dir()));
    }
    let own = |place: &PathBuf| place.starts_with(&of.directories.own);
    let places: Vec<PathBuf> =
        of.layers.iter().map(|(_, diff_id)| of.layer_path(diff_id)).filter(own).collect();
    sync::sync_layers(places.iter().map(PathBuf::as_path));
    Ok(Some(directories))
}

/// Creates the seam of an image whose layers all exist, if it may need one.
pub(super) fn create(of: &Unpacker<'_>) -> Result<()> {
    let lefts = dependencies(of)?;
    if !may_need_merge(&lefts) {
        return Ok(());
    }
    let name = merge_name(of);
    if of.find_complete(&name).is_some() {
        return Ok(());
    }
    let place = of.directories.own.join(name);
    let failed = |error: io::Error| of.failed("create the layer", &place, &error);
    let Some(part) = PartialDirectory::create(&place, of.stopped).map_err(failed)? else { return Ok(()) };
    let seam =
        MergeLayer::of(Layers::open(&layer_directories(of)).map_err(|errno| failed(errno.into()))?, &lefts)?;
    if !seam.directories.is_empty() {
        seam.write(&part.path().join("files")).map_err(failed)?;
    }
    part.finish().map_err(failed)
}

fn layer_directories(of: &Unpacker<'_>) -> Vec<PathBuf> {
    of.layers.iter().map(|(_, diff_id)| of.layer_path(diff_id).join("files")).collect()
}

fn dependencies(of: &Unpacker<'_>) -> Result<Vec<LayerSummary>> {
    let read = |place: PathBuf| {
        read_dependencies(&place).map_err(|error| of.failed("read the layer", &place, &error))
    };
    of.layers.iter().map(|(_, diff_id)| read(of.layer_path(diff_id))).collect()
}

/// Its name begins with that of the highest layer, and it is removed with it.
fn merge_name(of: &Unpacker<'_>) -> String {
    let all: Vec<&str> = of.layers.iter().map(|(_, diff_id)| diff_id.hex()).collect();
    let top = all.last().copied().unwrap_or_default();
    format!("{top}.{}", Digest::of(all.join("\n").as_bytes()).short())
}

/// Whether layers above the lowest depend on attributes from layers below, judged only by their lists.
fn may_need_merge(lefts: &[LayerSummary]) -> bool {
    let says_root = |left: &LayerSummary| !left.implied_directories.iter().any(Vec::is_empty);
    lefts.iter().enumerate().skip(1).any(|(layer, left)| {
        let root = !says_root(left) && lefts[..layer].iter().any(says_root);
        root || !left.external_links.is_empty()
            || left.implied_directories.iter().any(|path| !path.is_empty())
    }) || lefts.iter().any(|left| !left.external_links.is_empty())
}

/// The content of a seam.
struct MergeLayer {
    layers: Layers,
    /// Directories, outer ones first, with the entry whose owner they get; `None` for the default.
    directories: Vec<(Names, Option<LayerEntry>)>,
    /// Files of lower layers: where they are, and their names here.
    files: Vec<(LayerEntry, Names, Vec<Names>)>,
}

impl MergeLayer {
    fn of(layers: Layers, lefts: &[LayerSummary]) -> Result<Self> {
        let implied: Vec<HashSet<&[u8]>> =
            lefts.iter().map(|left| left.implied_directories.iter().map(Vec::as_slice).collect()).collect();
        let machine = |errno: Errno| Error::system("look through the layers", errno);
        // The highest layer that has an entry for a directory, and the highest that has the directory.
        let source = |path: &[u8]| -> Result<Option<(Option<LayerEntry>, LayerEntry)>> {
            let seen = layers.stack(&names(path), 0..lefts.len()).map_err(machine)?.entries;
            let says = |seen: &&LayerEntry| !implied[seen.layer].contains(path);
            let directory =
                |seen: &&LayerEntry| FileType::from_raw_mode(seen.stat.st_mode) == FileType::Directory;
            Ok(seen.first().filter(directory).map(|first| (seen.iter().find(says).copied(), *first)))
        };
        let mut needed: BTreeSet<Vec<u8>> = BTreeSet::new();
        for path in implied.iter().flatten().copied().collect::<BTreeSet<_>>() {
            if let Some((Some(says), first)) = source(path)?
                && says.layer != first.layer
            {
                needed.insert(path.to_vec());
            }
        }
        let files = linked_files(&layers, lefts)?;
        needed.extend(files.iter().flat_map(|(_, _, names)| names).map(parent));
        for path in needed.clone() {
            needed.extend((0..path.len()).filter(|&at| path[at] == b'/').map(|at| path[..at].to_vec()));
            needed.insert(Vec::new());
        }
        let mut directories = Vec::with_capacity(needed.len());
        for path in needed {
            let like = source(&path)?.map(|(says, first)| says.unwrap_or(first));
            directories.push((names(&path), like));
        }
        Ok(Self { layers, directories, files })
    }

    fn write(&self, root: &Path) -> io::Result<()> {
        let at = |names: &Names| root.join(Path::new(OsStr::from_bytes(&names.join(&b'/'))));
        for (directory, _) in &self.directories {
            fs::create_dir(at(directory))?;
        }
        for (seen, from, names) in &self.files {
            let (first, others) = names.split_first().expect("a borrowed file has a name");
            self.layers.copy_file(seen, from, &at(first))?;
            for name in others {
                fs::hard_link(at(first), at(name))?;
            }
        }
        for (directory, like) in self.directories.iter().rev() {
            let made = File::open(at(directory))?;
            match like {
                Some(seen) => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                    copy_attributes(&made, &self.layers.open_in(seen.layer, directory, flags)?, &seen.stat)?;
                }
                None => rustix::fs::fchmod(&made, Mode::from_raw_mode(0o755))?,
            }
        }
        Ok(())
    }
}

/// The files of lower layers that layers link to, where the new name is to be seen in the image.
fn linked_files(layers: &Layers, lefts: &[LayerSummary]) -> Result<Vec<(LayerEntry, Names, Vec<Names>)>> {
    let machine = |errno: Errno| Error::system("look through the layers", errno);
    let mut files: Vec<(LayerEntry, Names, Vec<Names>)> = Vec::new();
    for (layer, left) in lefts.iter().enumerate() {
        let of_layer: HashMap<&[u8], &[u8]> =
            left.external_links.iter().map(|(name, target)| (name.as_slice(), target.as_slice())).collect();
        for (name, target) in &left.external_links {
            // A link to a link that was made just so; never around in a circle, for each is for an earlier one.
            let mut target = target.as_slice();
            for _ in 0..of_layer.len() {
                target = of_layer.get(target).copied().unwrap_or(target);
            }
            let seen = layers.lookup(&names(target), layer).map_err(machine)?;
            let is_file =
                |seen: &LayerEntry| FileType::from_raw_mode(seen.stat.st_mode) != FileType::Directory;
            let seen = seen.filter(is_file).ok_or_else(|| no_such_target(name, target))?;
            // A later entry of its own layer, or a layer above, takes precedence.
            let own = layers.stack(&names(name), layer..layer + 1).map_err(machine)?;
            let above = layers.stack(&names(name), layer + 1..lefts.len()).map_err(machine)?;
            if !own.entries.is_empty() || !above.entries.is_empty() || above.end.is_some() {
                continue;
            }
            let from = names(target);
            if let Some((_, _, there)) =
                files.iter_mut().find(|(other, at, _)| other.layer == seen.layer && *at == from)
            {
                there.push(names(name));
                continue;
            }
            let mut all = vec![names(name)];
            // Where the file itself is still to be seen it is one with its new name.
            let top = layers.lookup(&from, lefts.len()).map_err(machine)?;
            if top.is_some_and(|top| top.layer == seen.layer) {
                all.push(from.clone());
            }
            files.push((seen, from, all));
        }
    }
    Ok(files)
}

/// A hard link to what is nowhere.
pub(super) fn no_such_target(name: &[u8], target: &[u8]) -> Error {
    let (name, target) = (String::from_utf8_lossy(name), String::from_utf8_lossy(target));
    Error::new(Kind::System, format!("`{name}` is a hard link to `{target}`, which is in no layer"))
        .help("contact the author of the image")
}

fn names(path: &[u8]) -> Names {
    path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
}

fn parent(names: &Names) -> Vec<u8> {
    names[..names.len() - 1].join(&b'/')
}
