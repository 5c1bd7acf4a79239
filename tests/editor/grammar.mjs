// The grammar of jobs in VS Code's own engine, with its grammars of YAML, shells and Python: which text is of which language.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { Check, REPOSITORY } from "./check.mjs";

const check = new Check("grammar");
const vscode = join(REPOSITORY, "target/editor/code-server/node_modules/code-server/lib/vscode");
if (!existsSync(join(vscode, "node_modules/vscode-textmate"))) {
    check.needs("code-server");
}
const require = createRequire(join(vscode, "package.json"));
const { INITIAL, Registry } = require("vscode-textmate");
const oniguruma = require("vscode-oniguruma");
await oniguruma.loadWASM(readFileSync(join(vscode, "node_modules/vscode-oniguruma/release/onig.wasm")));

const extensions = (name) => join(vscode, "extensions", name);
const FILES = {
    "source.jobc": join(REPOSITORY, "editors/vscode/syntaxes/jobc.tmLanguage.json"),
    "source.yaml": extensions("yaml/syntaxes/yaml.tmLanguage.json"),
    ...Object.fromEntries(["1.0", "1.1", "1.2", "1.3"].map((it) => [`source.yaml.${it}`, extensions(`yaml/syntaxes/yaml-${it}.tmLanguage.json`)])),
    "source.shell": extensions("shellscript/syntaxes/shell-unix-bash.tmLanguage.json"),
    "source.python": extensions("python/syntaxes/MagicPython.tmLanguage.json"),
};
const registry = new Registry({
    onigLib: Promise.resolve({ createOnigScanner: (it) => new oniguruma.OnigScanner(it), createOnigString: (it) => new oniguruma.OnigString(it) }),
    loadGrammar: async (scope) => (FILES[scope] === undefined ? null : JSON.parse(readFileSync(FILES[scope], "utf8"))),
});
const grammar = await registry.loadGrammar("source.jobc");

/** A line for each token of interest: its text, and its language with the innermost scope. */
function tokens(text) {
    let state = INITIAL;
    return text.split("\n").map((line) => {
        const { tokens, ruleStack } = grammar.tokenizeLine(line, state);
        state = ruleStack;
        return tokens.map(({ startIndex, endIndex, scopes }) => {
            const language = ["expression.jobc", "source.shell", "source.python"].find((it) => scopes.some((scope) => scope.includes(it)));
            return { text: line.slice(startIndex, endIndex), language: language ?? "yaml", scope: scopes.at(-1) };
        });
    });
}

/** What the tokens of a line are: the languages of its words, and the scope of the first token with this text. */
const languages = (line) => [...new Set(line.filter(({ text }) => text.trim() !== "").map(({ language }) => language))];
const scope = (line, text) => line.find((it) => it.text.trim() === text)?.scope;

const JOB = `version: 1
run: x
roles:
  one:
    run: | # a comment
      if true; then # of the shell
        echo "$HOME" \${{ params.lr }}

        run: not a key
      fi
    needs: [other]
    setup: >-
      for i in 1 2; do echo; done
  second:
    shell: [python, -c]
    resources: {cpu: 1}
    run: |
      import os
      def f(): return "\${{ job.name }}"
    retry: {max: 1}
  third:
    run: |
      export A=1
    image:
      run:
        - pip install x
name: last
`;
const lines = tokens(JOB);
const at = (start) => lines[JOB.split("\n").findIndex((line) => line.trim().startsWith(start))];

check.equal(languages(at("if true")), ["source.shell"], "a script");
check.equal(scope(at("if true"), "if"), "keyword.control.if.shell", "a word of the shell");
check.equal(languages(at('echo "$HOME"')), ["source.shell", "expression.jobc"], "an expression in a script");
check.equal(languages(at("run: not")), ["source.shell"], "a line of a script that looks like a key");
check.equal(languages(at("fi")), ["source.shell"], "a line after an empty one");
check.equal(languages(at("for i")), ["source.shell"], "a folded script");
check.equal(languages(at("import os")), ["source.python"], "a script of Python");
check.equal(scope(at("import os"), "import"), "keyword.control.import.python", "a word of Python");
check.equal(languages(at("def f")), ["source.python", "expression.jobc"], "an expression in Python");
check.equal(languages(at("export A")), ["source.shell"], "a script of the role after one in Python");
for (const start of ["version", "needs", "second", "resources", "retry", "third", "image", "- pip", "name"]) {
    check.equal(languages(at(start)), ["yaml"], `the line ${start}`);
}
for (const key of ["run", "setup", "needs", "shell", "retry", "name"]) {
    const line = lines.find((line) => line.some(({ text, language }) => text === key && language === "yaml"));
    check.equal(line && scope(line, key), "entity.name.tag.yaml", `the key ${key}`);
}
check.end();
