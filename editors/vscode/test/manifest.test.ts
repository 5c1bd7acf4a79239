// package.json and the code must agree, and the problem matcher with what the program prints.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const sources = readdirSync("src").map((name) => readFileSync(join("src", name), "utf8")).join("\n");

test("every command in the manifest is registered, and the other way round", () => {
    const registered = [...sources.matchAll(/(?:aboutJob|registerCommand)\("(jobc\.\w+)"/g)].map(([, name]) => name);
    const contributed = manifest.contributes.commands.map(({ command }: { command: string }) => command);
    assert.deepEqual(registered.sort(), contributed.sort());
});

test("every setting is read somewhere", () => {
    for (const name of Object.keys(manifest.contributes.configuration.properties)) {
        // The language client reads its own trace setting.
        const key = name.replace("jobc.", "");
        assert.ok(key === "trace.server" || sources.includes(`"${key}"`), `${name} is read nowhere`);
    }
});

test("the problem matcher reads every line that jobc prints in short form", () => {
    const { regexp, ...groups } = manifest.contributes.problemPatterns[0];
    const pattern = new RegExp(regexp);
    const root = join("..", "..", "tests", "errors");
    let lines = 0;
    for (const directory of readdirSync(root)) {
        for (const name of readdirSync(join(root, directory)).filter((name) => name.endsWith(".snap"))) {
            const short = /^==== short\n([^]*?)^==== text$/m.exec(readFileSync(join(root, directory, name), "utf8"))?.[1] ?? "";
            for (const line of short.split("\n").filter((line) => /\[J\d{4}\]/.test(line) && /:\d+:\d+: /.test(line))) {
                const match = pattern.exec(line);
                assert.ok(match, `${directory}/${name}: ${line}`);
                assert.match(match[groups.severity] ?? "", /^(error|warning|note)$/);
                assert.match(match[groups.code] ?? "", /^J\d{4}$/);
                lines += 1;
            }
        }
    }
    assert.ok(lines > 200, `only ${lines} lines were found`);
});
