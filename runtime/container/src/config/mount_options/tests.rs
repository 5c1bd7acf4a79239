use super::*;

/// The options on one line, and below the result or the error.
fn check(kind: &str, options: &str) -> String {
    let options: Vec<&str> = options.split_whitespace().collect();
    let mount = serde_json::json!({"destination": "/x", "type": kind, "options": options});
    let mount: Mount = serde_json::from_value(mount).expect("a mount");
    let mut text = format!("{kind}: {}\n", options.join(" "));
    match MountOptions::of(&mount, "/mounts/0") {
        Ok(options) => text += &output(&options),
        Err(errors) => {
            for error in errors {
                text += &format!("  {error}\n");
                error.hints.iter().for_each(|help| text += &format!("    help: {help}\n"));
            }
        }
    }
    text
}

/// The values that are not the default.
fn output(options: &MountOptions) -> String {
    let mut parts = Vec::new();
    for (name, bits) in [
        ("set", options.set),
        ("clear", options.clear),
        ("set below", options.recursive_set),
        ("clear below", options.recursive_clear),
    ] {
        if bits != 0 {
            parts.push(format!("{name} {}", attributes(bits)));
        }
    }
    for Propagation { flag, recursive } in &options.propagation {
        parts.push(format!("propagation {flag:#x} {recursive:?}"));
    }
    if let Some(recursive) = options.bind {
        parts.push(format!("bind recursive {recursive:?}"));
    }
    if let Some(recursive) = options.id_map {
        parts.push(format!("other owners recursive {recursive:?}"));
    }
    if options.copy_up {
        parts.push("copy up".to_owned());
    }
    parts.extend(options.without_effect.iter().map(|word| format!("{word} has no effect")));
    for (key, value) in &options.data {
        parts.push(
            format!("{key:?}") + &value.iter().map(|value| format!(" = {value:?}")).collect::<String>(),
        );
    }
    parts.iter().map(|part| format!("  {part}\n")).collect()
}

fn attributes(bits: u64) -> String {
    let names = [
        (RDONLY, "RDONLY"),
        (NOSUID, "NOSUID"),
        (NODEV, "NODEV"),
        (NOEXEC, "NOEXEC"),
        (NODIRATIME, "NODIRATIME"),
        (NOSYMFOLLOW, "NOSYMFOLLOW"),
    ];
    let mut text: Vec<String> =
        names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| (*name).to_owned()).collect();
    if bits & ATIME != 0 {
        text.push(format!("ATIME {:#x}", bits & ATIME));
    }
    text.join(" ")
}

#[test]
fn the_words_are_sorted_for_the_search() {
    assert!(WORDS.is_sorted_by_key(|(word, _)| word));
    for (word, _) in WORDS {
        assert!(lookup(word).is_some(), "{word} is found");
    }
}

#[test]
fn options_that_are_understood() {
    let cases = [
        ("proc", "nosuid noexec nodev"),
        ("proc", "hidepid=2 subset=pid gid=5 ro"),
        ("tmpfs", "nosuid strictatime mode=755 size=65536k tmpcopyup noswap"),
        ("devpts", "newinstance ptmxmode=0666 mode=0620 gid=5"),
        ("bind", ""),
        ("none", "rbind nosuid nodev ro rprivate"),
        ("none", "bind rbind"),
        ("none", "rbind bind"),
        ("none", "rbind rro rnosuid rnoatime dev"),
        ("none", "bind ro rw"),
        ("none", "bind rw ro"),
        ("none", "bind relatime"),
        ("none", "bind noatime atime"),
        ("none", "bind strictatime atime"),
        ("none", "bind strictatime nostrictatime nodiratime"),
        ("none", "rbind rslave shared unbindable"),
        ("none", "bind mode=755 ro size=1k"),
        ("none", "rbind idmap"),
        ("none", "rbind idmap ridmap"),
        ("ext4", "sync lazytime errors=remount-ro noload"),
        ("tmpfs", "defaults silent loud norelatime nomand"),
        ("overlay", "lowerdir=/a:/b,upperdir= userxattr"),
    ];
    insta::assert_snapshot!(cases.map(|(kind, options)| check(kind, options)).concat());
}

#[test]
fn options_that_are_refused() {
    let cases = [
        ("tmpfs", "nosiud size=1m mdoe=755"),
        ("mqueue", "size=1"),
        ("sysfs", "size=1"),
        ("none", "bind sync size Z=1"),
        ("proc", "tmpcopyup"),
        ("bind", "tmpcopyup"),
        ("tmpfs", "idmap ridmap"),
        ("ext4", "remount mand iversion =1"),
        ("devpts", "a\u{0}b"),
        ("ext4", "a\u{0}b"),
    ];
    insta::assert_snapshot!(cases.map(|(kind, options)| check(kind, options)).concat());
}

#[test]
fn every_word_that_is_listed_as_supported_is_taken() {
    for word in supported() {
        for (kind, also) in [("tmpfs", ""), ("none", "bind")] {
            let only_new = word == "tmpcopyup" || matches!(lookup(word), Some(Word::FileSystem));
            let only_bind = matches!(lookup(word), Some(Word::IdMap(_)));
            if kind == "none" && only_new || kind == "tmpfs" && only_bind {
                continue;
            }
            let text = check(kind, &format!("{also} {word}"));
            assert!(!text.contains("config.json"), "{text}");
        }
    }
    assert!(!supported().any(|word| word == "remount"));
}
