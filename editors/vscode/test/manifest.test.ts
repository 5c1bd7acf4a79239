// package.json and the code must agree. That the problem matcher reads what the program prints is checked with its messages.

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
