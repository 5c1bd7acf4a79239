// The languages of the texts, by file name; JSON alone is ours, for Monaco's needs a worker of its own.

import "monaco-editor/languages/definitions/dockerfile/register.js";
import "monaco-editor/languages/definitions/ini/register.js";
import "monaco-editor/languages/definitions/python/register.js";
import "monaco-editor/languages/definitions/shell/register.js";
import { conf, language } from "monaco-editor/languages/definitions/yaml/yaml.js";
import * as monaco from "monaco-editor/editor/editor.api.js";

/** The mode of jobs and targets in YAML, and that of jobs in JSON, as in the extension for VS Code. */
export const YAML = "jobc";
export const JSON = "jobc-json";

const JSON_TOKENS: monaco.languages.IMonarchLanguage = {
    tokenPostfix: ".json",
    tokenizer: {
        root: [
            [/"(?:[^"\\]|\\.)*"(?=\s*:)/, "type"],
            [/"(?:[^"\\]|\\.)*"?/, "string"],
            [/-?\d[\d.eE+-]*/, "number"],
            [/\b(?:true|false|null)\b/, "keyword"],
            [/\/\/.*/, "comment"],
            [/\/\*/, "comment", "@comment"],
            [/[{}[\],:]/, "delimiter"],
        ],
        comment: [
            [/\*\//, "comment", "@pop"],
            [/[^*]+|\*/, "comment"],
        ],
    },
};
const JSON_BRACKETS: monaco.languages.LanguageConfiguration = {
    comments: { lineComment: "//", blockComment: ["/*", "*/"] },
    brackets: [["{", "}"], ["[", "]"]],
    autoClosingPairs: ["{}", "[]", '""'].map(([open, close]) => ({ open: open ?? "", close: close ?? "" })),
};

/** Of a job, `run` and `setup` are scripts of the shell, up to the next line that is not indented below their key. */
const JOB_TOKENS: monaco.languages.IMonarchLanguage = {
    ...language,
    tokenizer: {
        ...language.tokenizer,
        root: [
            [
                /^( *)(run|setup)(:)( +)([|>][-+\d]*)(?= *(?:#.*)?$)/,
                ["white", "type", "operators", "white", { token: "operators", next: "@script.$1", nextEmbedded: "shell" }],
            ],
            ...(language.tokenizer["root"] ?? []),
        ],
        script: [[/^(?!$S2 )(?=.*\S)/, { token: "", next: "@pop", nextEmbedded: "@pop" }]],
    },
};

export function registerLanguages(): void {
    for (const id of [YAML, "yaml"]) {
        monaco.languages.register({ id });
        monaco.languages.setMonarchTokensProvider(id, id === YAML ? JOB_TOKENS : language);
        monaco.languages.setLanguageConfiguration(id, conf);
    }
    for (const id of [JSON, "json"]) {
        monaco.languages.register({ id });
        monaco.languages.setMonarchTokensProvider(id, JSON_TOKENS);
        monaco.languages.setLanguageConfiguration(id, JSON_BRACKETS);
    }
}

const BY_END: Record<string, string> = { yaml: "yaml", yml: "yaml", json: "json", py: "python", sh: "shell", cfg: "ini", toml: "ini" };

/** The language of a file by its path. */
export function languageOf(path: string): string {
    const name = path.slice(path.lastIndexOf("/") + 1);
    if (/dockerfile/i.test(name)) {
        return "dockerfile";
    }
    return BY_END[name.slice(name.lastIndexOf(".") + 1)] ?? "plaintext";
}

/** The language of a file that the user edits: of a job and its targets, the server's. */
export function languageOfInput(path: string, main: string): string {
    const language = languageOf(path);
    const ours = path === main || /^targets\.ya?ml$/.test(path);
    return ours ? (language === "json" ? JSON : YAML) : language;
}
