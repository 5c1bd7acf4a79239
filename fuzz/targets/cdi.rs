//! A CDI file, as JSON and as YAML: read, then applied to a container's configuration.
#![no_main]
use std::path::Path;

use jobc_gpu::cdi::Spec;

libfuzzer_sys::fuzz_target!(|text: &str| {
    for name in ["gpu.json", "gpu.yaml"] {
        let Ok(spec) = Spec::read(Path::new(name), text) else { continue };
        let written = serde_json::to_string(&spec).expect("a spec is JSON");
        let again = Spec::read(Path::new("gpu.json"), &written).expect("what was read is read again");
        assert_eq!(again, spec, "a spec changes when it is written");
    }
});
