//! Limits on the size of a file, and on what its aliases copy.

/// The maximum size of a text in bytes: 64 MiB.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The maximum nesting depth of lists and maps, including the values of aliases.
///
/// Later passes traverse the tree recursively; this limits their stack.
pub const MAX_DEPTH: usize = 128;

/// The maximum number of values that anchors and aliases of one file may copy.
///
/// With [`MAX_ALIAS_TEXT`] it limits the memory for a hostile file of 1 MiB to well under 256 MiB.
pub const MAX_ALIAS_NODES: usize = 250_000;

/// The maximum size of text that anchors and aliases of one file may copy: 16 MiB.
pub const MAX_ALIAS_TEXT: usize = 16 * 1024 * 1024;

/// The cost of copying a value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    /// Number of values, including itself.
    pub(super) nodes: usize,
    /// Size of its keys and strings in bytes.
    pub(super) text: usize,
    /// Depth of lists and maps; 0 for a scalar.
    pub(super) height: usize,
}

impl Weight {
    /// The cost of a scalar with text of that length.
    pub(super) fn scalar(text: usize) -> Self {
        Self { nodes: 1, text, height: 0 }
    }

    /// The cost of an empty list or map.
    pub(super) fn collection() -> Self {
        Self { nodes: 1, text: 0, height: 1 }
    }

    /// Adds a child to a collection.
    pub(super) fn take(&mut self, child: Self) {
        self.nodes += child.nodes;
        self.text += child.text;
        self.height = self.height.max(child.height + 1);
    }
}

/// The total cost of copies so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budget {
    nodes: usize,
    text: usize,
}

impl Budget {
    /// Counts one copy; `false` if the file exceeds the limits.
    pub(super) fn pay(&mut self, weight: Weight) -> bool {
        self.nodes = self.nodes.saturating_add(weight.nodes);
        self.text = self.text.saturating_add(weight.text);
        self.nodes <= MAX_ALIAS_NODES && self.text <= MAX_ALIAS_TEXT
    }
}
