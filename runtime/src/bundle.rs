//! A bundle: a folder with config.json, made by `jobc build` or by any other OCI tool.
