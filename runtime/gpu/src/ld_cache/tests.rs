use std::process::Command;

use super::*;

/// The output of `ldconfig -p` for a cache, without the surrounding lines.
fn printed(cache: &Path) -> Option<Vec<String>> {
    let ldconfig =
        ["/sbin/ldconfig", "/usr/sbin/ldconfig"].into_iter().find(|path| Path::new(path).exists())?;
    let output = Command::new(ldconfig).arg("-p").arg("-C").arg(cache).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().filter(|line| line.starts_with('\t')).map(|line| line.trim().to_owned()).collect())
}

#[test]
fn this_hosts_cache_is_written_as_it_was_read() {
    let Ok(bytes) = std::fs::read("/etc/ld.so.cache") else {
        jobc_test_skip::skip("/etc/ld.so.cache");
        return;
    };
    let cache = Cache::read(&bytes).expect("a cache");
    assert!(cache.find("libc.so.6", NATIVE_FLAGS).next().is_some_and(Path::exists));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    std::fs::write(&path, cache.write()).unwrap();
    assert_eq!(Cache::read(&cache.write()).unwrap().write(), cache.write());
    let Some(ours) = printed(&path) else {
        jobc_test_skip::skip("ldconfig");
        return;
    };
    assert_eq!(printed(Path::new("/etc/ld.so.cache")).unwrap(), ours);
}

#[test]
fn a_library_is_added_in_place_of_those_of_its_name() {
    let mut cache = Cache::default();
    cache.add(Path::new("/old/libcuda.so.1"), NATIVE_FLAGS);
    cache.add(Path::new("/old32/libcuda.so.1"), I386_FLAGS);
    cache.add(Path::new("/usr/lib/libcuda.so.1"), NATIVE_FLAGS);
    cache.hwcaps = vec![b"x86-64-v3".to_vec()];
    let read = Cache::read(&cache.write()).unwrap();
    assert_eq!(
        read.find("libcuda.so.1", NATIVE_FLAGS).collect::<Vec<_>>(),
        [Path::new("/usr/lib/libcuda.so.1")]
    );
    assert_eq!(read.hwcaps, cache.hwcaps);
    assert_eq!(read.find("libcuda.so.1", I386_FLAGS).count(), usize::from(NATIVE_FLAGS != I386_FLAGS));
}

#[test]
fn names_have_the_loaders_order() {
    for (one, other, order) in [
        ("libc.so.6", "libc.so.6", Ordering::Equal),
        ("libc.so.10", "libc.so.6", Ordering::Greater),
        ("libc.so.06", "libc.so.6", Ordering::Equal),
        ("lib1", "liba", Ordering::Greater),
        ("liba", "lib1", Ordering::Less),
        ("lib", "liba", Ordering::Less),
        ("lib1", "lib", Ordering::Greater),
        ("lib", "lib1", Ordering::Less),
        ("lib\u{e9}", "liba", Ordering::Less),
    ] {
        assert_eq!(compare(one.as_bytes(), other.as_bytes()), order, "{one} {other}");
    }
}

/// Corrupt bytes are not a cache, and never cause a panic.
#[test]
fn an_untrusted_cache_is_read_within_its_bounds() {
    let mut cache = Cache::default();
    for name in ["liba.so.1", "libb.so.2"] {
        cache.add(&Path::new("/lib").join(name), NATIVE_FLAGS);
    }
    cache.hwcaps = vec![b"x86-64-v2".to_vec()];
    let whole = cache.write();
    for end in 0..whole.len() {
        let _ = Cache::read(&whole[..end]);
    }
    for at in 0..whole.len() {
        for value in [0, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            if let Ok(read) = Cache::read(&bytes) {
                read.write();
            }
        }
    }
    assert_eq!(Cache::read(b""), Err(Unreadable::NoCache));
    assert_eq!(Cache::read(b"ld.so-1.7.0\0\xff\xff\xff\xff"), Err(Unreadable::NoCache));
}

/// Entries that share one long string do not make a cache the square of its size.
#[test]
fn entries_that_share_a_string_do_not_multiply() {
    let bomb = |entries: u32, length: usize| {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(entries.to_le_bytes());
        bytes.resize(HEADER_SIZE, 0);
        let strings = to_u32(HEADER_SIZE + entries as usize * ENTRY_SIZE);
        for _ in 0..entries {
            for number in [NATIVE_FLAGS, strings, strings, 0, 0, 0] {
                bytes.extend(number.to_le_bytes());
            }
        }
        bytes.resize(bytes.len() + length, b'a');
        bytes.push(0);
        bytes
    };
    assert_eq!(Cache::read(&bomb(20_000, 500_000)), Err(Unreadable::TooLarge));
    assert!(Cache::read(&bomb(2, 500_000)).is_ok());
    assert!(Cache::read(&bomb(20_000, 40)).is_ok());
}
