//! Unpacks layers and packs them again, for the integration tests in `tests/images` and the benchmarks in
//! `tests/bench/images`.
//!
//! ```text
//! unpack import STORE SOURCE          imports and unpacks an archive or a layout: prints its directories, lowest first
//! unpack layer STORE TAR [DIFF-ID]    the same for an image of one layer, made of a tar as it is
//! unpack layers STORE TAR...          the same for an image of several, lowest first
//! unpack pack DIRECTORY [SECONDS]        writes a directory as a layer to standard output, no file later than SECONDS
//! unpack remove DIRECTORY                removes a directory of unpacked layers, with files of all of this user's ids
//! ```
//!
//! The last line of the first three is `peak KIB`: this process's peak memory.
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use jobc_image::config::Config;
use jobc_image::manifest::media;
use jobc_image::pack::{PackOptions, pack};
use jobc_image::{Descriptor, Digest, Manifest, Platform, Progress, Store, source, unpack};
use jobc_sys::error::Result;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1).peekable();
    if words.next_if(|word| word == unpack::COMMAND).is_some() {
        return unpack::become_worker(words);
    }
    let words: Vec<String> = words.filter_map(|word| word.into_string().ok()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["import", store, source] => import(store, source),
        ["layer", store, tar] => layers(store, &[tar], None),
        ["layer", store, tar, diff_id] => layers(store, &[tar], Some(diff_id)),
        ["layers", store, ref tars @ ..] => layers(store, tars, None),
        ["pack", directory] => write(directory, None),
        ["pack", directory, seconds] => write(directory, seconds.parse().ok()),
        ["remove", directory] => remove(directory),
        _ => {
            eprintln!("usage: unpack import|layer|layers|pack|remove …");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_progress(progress: Progress) {
    if let Progress::Note(text) = progress {
        eprintln!("note: {text}");
    }
}

fn import(store: &str, source: &str) -> Result<()> {
    let (store, stopped) = (Store::open(Path::new(store))?, AtomicBool::new(false));
    for imported in source::import(&store, Path::new(source), &print_progress, &stopped)? {
        unpacked(&store, &imported.descriptor)?;
    }
    Ok(())
}

fn layers(store: &str, tars: &[&str], diff_id: Option<&str>) -> Result<()> {
    let store = Store::open(Path::new(store))?;
    let (mut config, mut layers) = (Config::default(), Vec::new());
    for tar in tars {
        let bytes = std::fs::read(tar).expect("a layer");
        let kind = match bytes[..] {
            [0x1f, 0x8b, ..] => media::LAYER_GZIP,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => media::LAYER_ZSTD,
            _ => media::LAYER,
        };
        let mut writer = store.begin()?;
        writer.write_all(&bytes).expect("written");
        let digest = writer.finish(None)?;
        config.rootfs.diff_ids.push(match diff_id {
            Some(diff_id) => diff_id.parse::<Digest>()?,
            None => digest.clone(),
        });
        layers.push(Descriptor::new(kind, digest, bytes.len() as u64));
    }
    let config = store.put_json(&config, media::CONFIG)?;
    let manifest = store.put_json(&Manifest::new(config, layers), media::MANIFEST)?;
    unpacked(&store, &manifest)
}

fn unpacked(store: &Store, descriptor: &Descriptor) -> Result<()> {
    let image = store.image(descriptor, &Platform::here())?;
    for directory in unpack::layers(store, &image, &print_progress, &AtomicBool::new(false))? {
        println!("{}", directory.display());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    println!("peak {}", peak.trim().trim_end_matches(" kB"));
    Ok(())
}

fn write(directory: &str, latest: Option<i64>) -> Result<()> {
    let packing = PackOptions { latest, root: true, ..PackOptions::default() };
    let mut output = std::io::BufWriter::with_capacity(1 << 18, std::io::stdout().lock());
    pack(Path::new(directory), &packing, &mut output)?;
    output.flush().expect("written");
    Ok(())
}

fn remove(directory: &str) -> Result<()> {
    let directory = PathBuf::from(directory);
    match unpack::Ownership::of_current_user()? {
        unpack::Ownership::Mapped(maps) => unpack::remove(&directory, &maps),
        _ => jobc_container::remove::remove(&directory),
    }
}
