//! Mounts: config.json's list, as steps that go by descriptor.
