//! An OCI image layout: an index.json and further documents, which are separated by lines of three dashes and name
//! each other as `@1`, `@2` instead of by digests and sizes.
#![no_main]
use std::fs;
use std::sync::atomic::AtomicBool;

use jobc_image::digest::Digest;
use jobc_image::{Platform, Store, source};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let around = tempfile::tempdir_in(jobc_fuzz::scratch()).expect("a temporary directory");
    let layout = around.path().join("layout");
    fs::create_dir_all(layout.join("blobs/sha256")).expect("new directories");
    fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion": "1.0.0"}"#).expect("a new file");
    let mut documents: Vec<String> = text.split("\n---\n").take(8).map(str::to_owned).collect();
    for number in (0..documents.len()).rev() {
        let name = if number == 0 {
            "index.json".to_owned()
        } else {
            let (digest, size) = (Digest::of(documents[number].as_bytes()), documents[number].len());
            for document in &mut documents[..number] {
                // At most as many as a real document has, or the text grows with every one.
                *document = document.replacen(&format!("@{number}.size"), &size.to_string(), 8).replacen(
                    &format!("@{number}"),
                    &digest.to_string(),
                    8,
                );
            }
            format!("blobs/sha256/{}", digest.hex())
        };
        fs::write(layout.join(name), &documents[number]).expect("a new file");
    }
    let store = Store::open(&around.path().join("store")).expect("a new store");
    let Ok(images) = source::import(&store, &layout, &|_| {}, &AtomicBool::new(false)) else { return };
    for image in images {
        let _ = store.image(&image.descriptor, &Platform::here());
        let _ = store.images_in(&image.descriptor);
    }
});
