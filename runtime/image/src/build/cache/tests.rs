use super::*;
use crate::manifest::media;

#[test]
fn parts_of_a_key_do_not_run_into_each_other() {
    let key = |parts: &[&str]| {
        let mut key = Key::of("run");
        key.add_all(parts);
        key.finish()
    };
    assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
    assert_ne!(key(&["a"]), key(&["a", ""]));
    assert_ne!(Key::of("run").with("x").finish(), Key::of("copy").with("x").finish());
    assert_eq!(key(&["a", "b"]), key(&["a", "b"]));
}

#[test]
fn a_result_is_known_as_long_as_its_layer_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let cache = Cache::new(&store, false).unwrap();
    let (with, without) = (Digest::of(b"with"), Digest::of(b"without"));
    assert_eq!(cache.get(&with), None);
    let blob = store.put(b"layer", media::LAYER).unwrap();
    let made =
        StepResult { layer: Some(Layer { diff_id: Digest::of(b"diff"), blob: blob.clone() }), created: 7 };
    cache.put(&with, &made).unwrap();
    cache.put(&without, &StepResult { layer: None, created: 8 }).unwrap();
    assert_eq!(cache.get(&with), Some(made));
    assert_eq!(cache.get(&without), Some(StepResult { layer: None, created: 8 }));
    assert_eq!(
        Cache::new(&store, true).unwrap().get(&with),
        None,
        "whoever wants nothing of the cache gets nothing"
    );
    std::fs::remove_file(store.path(&blob.digest)).unwrap();
    assert_eq!(cache.get(&with), None);
}

#[test]
fn what_is_half_there_is_not_known() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let cache = Cache::new(&store, false).unwrap();
    let key = Digest::of(b"key");
    for text in ["", "nothing", "nothing x", "sha256:abc", "nothing 1 2"] {
        std::fs::write(store.root().join("cache/layers").join(key.hex()), text).unwrap();
        assert_eq!(cache.get(&key), None, "{text}");
    }
}
