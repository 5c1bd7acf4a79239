import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { installWays, isOnPath } from "../src/install";

const directory = mkdtempSync(join(tmpdir(), "jobc-install-"));
after(() => rmSync(directory, { recursive: true }));

test("only tools that are there are offered, the best first", () => {
    assert.deepEqual(installWays(() => false), []);
    const commands = installWays((tool) => ["cargo", "pipx", "uv"].includes(tool)).map(({ command }) => command);
    assert.deepEqual(commands, ["uv tool install --upgrade jobc", "pipx install jobc", "cargo install --locked jobc"]);
});

test("a tool is there if a directory of PATH has it as a program", () => {
    writeFileSync(join(directory, "pipx"), "");
    const path = `/nonexistent::${directory}`;
    assert.equal(isOnPath("pipx", path, "linux"), false);
    chmodSync(join(directory, "pipx"), 0o755);
    assert.equal(isOnPath("pipx", path, "linux"), true);
    assert.equal(isOnPath("pipx", path, "win32"), false);
    assert.equal(isOnPath("uv", path, "linux"), false);
});
