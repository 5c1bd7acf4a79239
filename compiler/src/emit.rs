//! Pass 6: files to bytes, the same for the same input.

pub mod dockerfile;
mod json;
mod yaml;

pub use json::{to_json, to_json_rows};
pub use yaml::to_yaml;
