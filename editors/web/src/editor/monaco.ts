// The parts of Monaco that the page has; all of them would be twice the download.

import "monaco-editor/features/bracketMatching/register.js";
import "monaco-editor/features/caretOperations/register.js";
import "monaco-editor/features/clipboard/register.js";
import "monaco-editor/features/codeAction/register.js";
import "monaco-editor/features/codeEditor/register.js";
import "monaco-editor/features/codicon/register.js";
import "monaco-editor/features/comment/register.js";
import "monaco-editor/features/contextmenu/register.js";
import "monaco-editor/features/cursorUndo/register.js";
import "monaco-editor/features/find/register.js";
import "monaco-editor/features/folding/register.js";
import "monaco-editor/features/format/register.js";
import "monaco-editor/features/gotoError/register.js";
import "monaco-editor/features/gotoSymbol/register.js";
import "monaco-editor/features/hover/register.js";
import "monaco-editor/features/indentation/register.js";
import "monaco-editor/features/inlayHints/register.js";
import "monaco-editor/features/linesOperations/register.js";
import "monaco-editor/features/links/register.js";
import "monaco-editor/features/multicursor/register.js";
import "monaco-editor/features/quickCommand/register.js";
import "monaco-editor/features/readOnlyMessage/register.js";
import "monaco-editor/features/referenceSearch/register.js";
import "monaco-editor/features/rename/register.js";
import "monaco-editor/features/semanticTokens/register.js";
import "monaco-editor/features/snippet/register.js";
import "monaco-editor/features/suggest/register.js";
import "monaco-editor/features/toggleTabFocusMode/register.js";
import "monaco-editor/features/tokenization/register.js";
import "monaco-editor/features/wordHighlighter/register.js";
import "monaco-editor/features/wordOperations/register.js";
// Of these features, `register.js` of Monaco 0.57 has only a part.
import "monaco-editor/editor/browser/coreCommands.js";
import "monaco-editor/editor/contrib/gotoSymbol/browser/goToCommands.js";
import "monaco-editor/editor/contrib/semanticTokens/browser/documentSemanticTokens.js";
import "monaco-editor/editor/contrib/suggest/browser/suggestController.js";

import * as monaco from "monaco-editor/editor/editor.api.js";

/** Says where Monaco's own worker is; before the first editor. */
export function useWorker(address: URL): void {
    self.MonacoEnvironment = { getWorker: () => new Worker(address, { type: "module", name: "monaco" }) };
}

// For the console, and for the tests of the page.
Object.assign(self, { monaco });

const dark = matchMedia("(prefers-color-scheme: dark)");

/** Follows the colors that the user prefers. */
export function followColors(): void {
    // Monaco's own colors of these have less contrast than people need.
    const theme = (base: "vs" | "vs-dark", comment: string, hint: string): void =>
        monaco.editor.defineTheme(`jobc-${base}`, {
            base,
            inherit: true,
            rules: [{ token: "comment", foreground: comment }],
            colors: { "editorInlayHint.foreground": hint, "editorInlayHint.background": "#80808018" },
        });
    theme("vs", "#007400", "#5a5f66");
    theme("vs-dark", "#7cab66", "#a8a8a8");
    const apply = (): void => monaco.editor.setTheme(dark.matches ? "jobc-vs-dark" : "jobc-vs");
    dark.addEventListener("change", apply);
    apply();
}

const COMMON: monaco.editor.IStandaloneEditorConstructionOptions = {
    model: null,
    automaticLayout: true,
    fontSize: 13,
    fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
    minimap: { enabled: false },
    scrollBeyondLastLine: false,
    fixedOverflowWidgets: true,
    renderLineHighlight: "none",
    renderFinalNewline: "on",
    padding: { top: 8, bottom: 8 },
    tabSize: 2,
    "semanticHighlighting.enabled": true,
    stickyScroll: { enabled: false },
};

/** The editor of the job. */
export function makeEditor(element: HTMLElement): monaco.editor.IStandaloneCodeEditor {
    return monaco.editor.create(element, {
        ...COMMON,
        ariaLabel: "the job",
        quickSuggestions: { other: true, strings: true, comments: false },
        // Names are the server's; words of the text would stand among them.
        wordBasedSuggestions: "off",
        suggest: { showWords: false, snippetsPreventQuickSuggestions: false },
        renderLineHighlight: "line",
        lightbulb: { enabled: "onCode" as monaco.editor.ShowLightbulbIconMode },
    });
}

/** A view of what is built. */
export function makeViewer(element: HTMLElement): monaco.editor.IStandaloneCodeEditor {
    return monaco.editor.create(element, {
        ...COMMON,
        ariaLabel: "the file that is built",
        readOnly: true,
        readOnlyMessage: { value: "This file is built from the job." },
        domReadOnly: true,
        occurrencesHighlight: "off",
        folding: true,
        lineNumbersMinChars: 4,
    });
}

export { monaco };
