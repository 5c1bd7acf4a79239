import assert from "node:assert/strict";
import { test } from "node:test";

import kinds from "../../lsp/src/recognize.json";
import { isForeign, recognise, topLevelKeys, type Kind } from "../src/recognise";

for (const [why, files] of Object.entries(kinds as unknown as Record<string, [path: string, text: string, kind: Kind | null][]>)) {
    test(why, () => {
        for (const [path, text, kind] of files) {
            assert.equal(recognise(path, text) ?? null, kind, `${path}:\n${text}`);
        }
    });
}

test("keys are read past comments, quotes and what is not finished", () => {
    assert.deepEqual([...topLevelKeys("a: 1\n'b c': 2\n\"d\":\n  e: 3\n#f: 4\ng:h\nurl: http://x\n")], ["a", "b c", "d", "url"]);
    assert.deepEqual([...topLevelKeys('/* { */ {"a": [{"b": 1}], // "c": 2\n "d": ":", "e": {"f"')], ["a", "d", "e"]);
    assert.equal(isForeign("- a\n"), true);
    assert.equal(isForeign("data:\n- b\n"), false);
});

test("a long file is read in no time", () => {
    const text = `version: 1\n${"x: {a: [1, 2, 3]}\n".repeat(50_000)}`;
    const start = performance.now();
    recognise("/a/x.yaml", text);
    recognise("/a/x.json", `{${'"x": {"a": [1, 2, 3]},\n'.repeat(50_000)}`);
    assert.ok(performance.now() - start < 1000);
});
