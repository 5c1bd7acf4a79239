//! A bundle's config.json: read, then checked as a whole.
#![no_main]
use jobc_container::config::Config;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    if let Ok(config) = Config::read(text) {
        let found = config.check();
        assert_eq!(found.is_empty(), config.refuse().is_ok(), "`check` and `refuse` disagree");
    }
});
