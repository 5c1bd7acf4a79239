//! A Dockerfile.
#![no_main]
use jobc_dockerfile::{Options, inspect, read};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let args = [("VERSION".to_owned(), "1".to_owned())];
    let platform = "linux/amd64";
    let options = Options { args: &args, target: None, platform, build_platform: platform };
    let inspection = inspect(bytes, &options);
    for refusal in inspection.refusals.iter().chain(&inspection.remarks) {
        let (text, span) = (std::str::from_utf8(bytes).unwrap_or_default(), refusal.span.clone());
        assert!(text.is_empty() || text.get(span.clone()).is_some(), "{span:?} lies outside the file");
    }
    assert_eq!(read(bytes, &options).is_ok(), inspection.build.is_some(), "`inspect` and `read` disagree");
});
