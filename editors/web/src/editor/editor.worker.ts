// Monaco's own worker.

import "monaco-editor/editor/editor.worker.js";
