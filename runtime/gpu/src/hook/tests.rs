use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::ld_cache::{Cache, NATIVE_FLAGS};

/// A root whose paths lead out of it wherever they can, and a directory next to it that must stay as it is.
struct Scene {
    directory: tempfile::TempDir,
    root: OwnedFd,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        for name in ["root/usr/lib", "root/dev", "outside"] {
            fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, &root, flags, Mode::empty()).unwrap();
        Self { directory, root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn is_untouched(&self) -> bool {
        fs::read_dir(self.path("outside")).unwrap().count() == 0
    }
}

fn order() -> HookRequest {
    HookRequest {
        release: Some("550.54.15".to_owned()),
        libraries: vec!["/usr/lib/libcuda.so.550.54.15".into(), "/usr/lib/libcuda.so.1".into()],
        libraries_32: vec![],
        links: vec![
            ("/usr/lib/libcuda.so.1".into(), "libcuda.so.550.54.15".into()),
            ("/opt/new/directory/libcuda.so".into(), "/usr/lib/libcuda.so.1".into()),
        ],
    }
}

#[test]
fn arguments_are_read_as_they_were_written() {
    let order = HookRequest { libraries_32: vec!["/usr/lib32/libcuda.so.1".into()], ..order() };
    let words = order.arguments();
    assert_eq!(words[..2], ["jobc", COMMAND]);
    assert_eq!(HookRequest::parse(words.into_iter().skip(2).map(OsString::from)).unwrap(), order);
    for wrong in [&["--library"][..], &["--link", "x"], &["--what", "x"]] {
        assert!(HookRequest::parse(wrong.iter().map(OsString::from)).is_err(), "{wrong:?}");
    }
}

#[test]
fn links_are_made_in_place_of_what_stands_there() {
    let scene = Scene::new();
    fs::write(scene.path("root/usr/lib/libcuda.so.1"), "old").unwrap();
    for _ in 0..2 {
        apply(&order(), &scene.root).unwrap();
    }
    let says = |name: &str| fs::read_link(scene.path(name)).unwrap();
    assert_eq!(says("root/usr/lib/libcuda.so.1"), Path::new("libcuda.so.550.54.15"));
    assert_eq!(says("root/opt/new/directory/libcuda.so"), Path::new("/usr/lib/libcuda.so.1"));
}

#[test]
fn the_cache_of_the_loader_has_the_paths() {
    let scene = Scene::new();
    let mut cache = Cache::default();
    for path in ["/lib/libc.so.6", "/old/libcuda.so.1"] {
        cache.add(Path::new(path), NATIVE_FLAGS);
    }
    fs::create_dir(scene.path("root/etc")).unwrap();
    fs::write(scene.path("root/etc/ld.so.cache"), cache.write()).unwrap();
    apply(&order(), &scene.root).unwrap();
    let cache = Cache::read(&fs::read(scene.path("root/etc/ld.so.cache")).unwrap()).unwrap();
    let find = |name: &str| cache.find(name, NATIVE_FLAGS).map(Path::to_owned).collect::<Vec<_>>();
    assert_eq!(find("libcuda.so.1"), [Path::new("/usr/lib/libcuda.so.1")]);
    assert_eq!(find("libc.so.6"), [Path::new("/lib/libc.so.6")]);
    let list = fs::read_to_string(scene.path("root/etc/ld.so.conf.d/00-jobc-gpu.conf")).unwrap();
    assert_eq!(list, "/usr/lib\n");
}

/// An image with a newer libcuda of its own is kept; one with an older libcuda is not.
#[test]
fn forward_compatibility() {
    for (brought, first) in
        [("560.35.05", "/usr/local/cuda/compat"), ("535.104.05", "/usr/lib"), ("1", "/usr/lib")]
    {
        let scene = Scene::new();
        fs::create_dir_all(scene.path("root/usr/local/cuda-12/compat")).unwrap();
        symlink("cuda-12", scene.path("root/usr/local/cuda")).unwrap();
        let library = format!("root/usr/local/cuda/compat/libcuda.so.{brought}");
        fs::write(scene.path(&library), "").unwrap();
        fs::write(scene.path("root/usr/local/cuda/compat/libcuda.so.1"), "").unwrap();
        apply(&order(), &scene.root).unwrap();
        let list = fs::read_to_string(scene.path("root/etc/ld.so.conf.d/00-jobc-gpu.conf")).unwrap();
        assert_eq!(list.lines().next(), Some(first), "{brought}");
        let cache = Cache::read(&fs::read(scene.path("root/etc/ld.so.cache")).unwrap()).unwrap();
        let found = cache.find("libcuda.so.1", NATIVE_FLAGS).next().map(Path::to_owned);
        assert_eq!(found.as_deref().and_then(Path::parent), Some(Path::new(first)), "{brought}");
    }
}

/// Links of the image lead somewhere inside it, or nowhere.
#[test]
fn no_path_escapes_the_root() {
    let scene = Scene::new();
    let outside = scene.path("outside");
    for (name, target) in [
        ("root/etc", outside.clone()),
        ("root/opt", outside.join("opt")),
        ("root/up", PathBuf::from("../outside")),
    ] {
        symlink(target, scene.path(name)).unwrap();
    }
    let mut order = order();
    order.links.push(("/up/libx.so".into(), "y".into()));
    order.links.push(("/../../outside/libx.so".into(), "y".into()));
    let _ = apply(&order, &scene.root);
    assert!(scene.is_untouched());

    let scene = Scene::new();
    fs::create_dir(scene.path("root/etc")).unwrap();
    symlink(scene.path("outside/cache"), scene.path("root/etc/ld.so.cache")).unwrap();
    symlink(scene.path("outside"), scene.path("root/etc/ld.so.conf.d")).unwrap();
    let _ = apply(&super::tests::order(), &scene.root);
    assert!(scene.is_untouched());
}

/// A FIFO instead of the cache must not hold the start up.
#[test]
fn a_cache_that_is_not_a_file_is_ignored() {
    let scene = Scene::new();
    fs::create_dir(scene.path("root/etc")).unwrap();
    let fifo = scene.path("root/etc/ld.so.cache");
    rustix::fs::mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    apply(&order(), &scene.root).unwrap();
    assert!(Cache::read(&fs::read(fifo).unwrap()).is_ok());
}

/// /proc/driver/nvidia lists only the container's cards, and states that programs do not create nodes.
#[test]
fn proc_is_covered() {
    use jobc_fake_gpus::{Nodes, model, write_host};
    use rustix::thread::{UnshareFlags, unshare_unsafe};

    if !jobc_test_skip::is_root() {
        return;
    }
    let machine = tempfile::tempdir().unwrap();
    write_host(&model::named("a100").unwrap(), machine.path(), Nodes::Files).unwrap();
    let scene = Scene::new();
    fs::create_dir_all(scene.path("root/proc/driver/nvidia")).unwrap();
    fs::write(scene.path("root/dev/nvidia2"), "").unwrap();
    fs::write(scene.path("root/dev/nvidiactl"), "").unwrap();
    let source = machine.path().join("proc/driver/nvidia");
    let listed = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: unsharing in a separate thread does not affect the others' mounts.
            #[allow(unsafe_code)]
            unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }.unwrap();
            let private =
                rustix::mount::MountPropagationFlags::PRIVATE | rustix::mount::MountPropagationFlags::REC;
            rustix::mount::mount_change("/", private).unwrap();
            // A file descriptor opened before belongs to the other namespace.
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            let root = openat(CWD, scene.path("root"), flags, Mode::empty()).unwrap();
            procfs::cover(&root, &source).unwrap();
            let covered = scene.path("root/proc/driver/nvidia");
            assert!(fs::write(covered.join("x"), "").is_err(), "it is read-only");
            list(&covered, &covered)
        });
        thread.join().unwrap()
    });
    assert!(
        fs::read_dir(scene.path("root/proc/driver/nvidia")).unwrap().next().is_none(),
        "only in the namespace"
    );
    insta::assert_snapshot!(listed);
}

fn list(root: &Path, directory: &Path) -> String {
    let mut names: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
        .iter()
        .map(|path| {
            if path.is_dir() {
                list(root, path)
            } else {
                let text = fs::read_to_string(path).unwrap();
                let last = text.lines().last().unwrap_or_default();
                format!("{}: {last}\n", path.strip_prefix(root).unwrap().display())
            }
        })
        .collect()
}
