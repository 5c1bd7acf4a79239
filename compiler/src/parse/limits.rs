//! How much a file may ask of us, and the count of what its aliases copy.

/// The largest text that is read, in bytes: 64 MiB.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;

/// How deep lists and maps may nest, aliases counted with their values.
///
/// Later passes walk the tree by recursion; this is what keeps their stack small.
pub const MAX_DEPTH: usize = 128;

/// How many values anchors and aliases of one file may copy.
///
/// With [`MAX_ALIAS_TEXT`] it keeps the memory for a hostile file of 1 MiB well under 256 MiB.
pub const MAX_ALIAS_NODES: usize = 250_000;

/// How many bytes of text anchors and aliases of one file may copy: 16 MiB.
pub const MAX_ALIAS_TEXT: usize = 16 * 1024 * 1024;

/// The cost of copying a value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    /// Values in it, itself included.
    pub(super) nodes: usize,
    /// Bytes of its keys and strings.
    pub(super) text: usize,
    /// Levels of lists and maps in it; 0 for a scalar.
    pub(super) height: usize,
}

impl Weight {
    /// The weight of a scalar with that much text.
    pub(super) fn scalar(text: usize) -> Self {
        Self { nodes: 1, text, height: 0 }
    }

    /// The weight of an empty list or map.
    pub(super) fn collection() -> Self {
        Self { nodes: 1, text: 0, height: 1 }
    }

    /// Puts a child into a collection.
    pub(super) fn take(&mut self, child: Self) {
        self.nodes += child.nodes;
        self.text += child.text;
        self.height = self.height.max(child.height + 1);
    }
}

/// What aliases have copied so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budget {
    nodes: usize,
    text: usize,
}

impl Budget {
    /// Pays for one copy; `false` where the file has copied too much.
    pub(super) fn pay(&mut self, weight: Weight) -> bool {
        self.nodes = self.nodes.saturating_add(weight.nodes);
        self.text = self.text.saturating_add(weight.text);
        self.nodes <= MAX_ALIAS_NODES && self.text <= MAX_ALIAS_TEXT
    }
}
