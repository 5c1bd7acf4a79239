import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { candidates, locate } from "../src/locate";

const directory = mkdtempSync(join(tmpdir(), "jobc-locate-"));
after(() => rmSync(directory, { recursive: true }));

/** A program that ends as the script says, in the place where an extension keeps its own. */
function extensionWith(name: string, script: string, mode = 0o755): string {
    const bin = join(directory, name, "bin");
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, "jobc"), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, "jobc"), mode);
    return join(directory, name);
}

test("a setting is the only candidate; else the extension's own comes before PATH", () => {
    assert.deepEqual(candidates("/opt/jobc", "/ext", "linux"), ["/opt/jobc"]);
    assert.deepEqual(candidates(" ~/bin/jobc ", "/ext", "linux"), [`${homedir()}/bin/jobc`]);
    assert.deepEqual(candidates("", "/ext", "linux"), [join("/ext", "bin", "jobc"), "jobc"]);
    assert.deepEqual(candidates("", "/ext", "win32"), [join("/ext", "bin", "jobc.exe"), "jobc.exe"]);
});

test("the extension's own program is taken where it serves", async () => {
    const extension = extensionWith("serves", '[ "$*" = "lsp --help" ]');
    assert.deepEqual(await locate("", extension), { program: join(extension, "bin", "jobc") });
});

test("each way to have no program has its own sentence", async () => {
    const path = process.env["PATH"];
    process.env["PATH"] = "/usr/bin:/bin";
    try {
        const missing = join(directory, "nowhere");
        assert.deepEqual(await locate(missing, directory), { problem: `the program \`jobc\` was not found: there is no \`${missing}\`` });
        assert.deepEqual(await locate("", directory), { problem: "the program `jobc` was not found: it is not on PATH" });
        const old = extensionWith("old", "exit 2");
        assert.match(JSON.stringify(await locate("", old)), /too old for this extension: it has no command `lsp`/);
        const locked = extensionWith("locked", "exit 0", 0o644);
        assert.match(JSON.stringify(await locate("", locked)), /cannot be executed: permission denied/);
    } finally {
        process.env["PATH"] = path;
    }
});
