import assert from "node:assert/strict";
import { test } from "node:test";

import { isForeign, recognise, topLevelKeys, type Kind } from "../src/recognise";

/** Asserts what files are, each a path, a text, and the kind. */
function check(files: [path: string, text: string, kind: Kind | undefined][]): void {
    for (const [path, text, kind] of files) {
        assert.equal(recognise(path, text), kind, `${path}:\n${text}`);
    }
}

test("a name is enough while the file is empty", () => {
    check([
        ["/a/job.yaml", "", "job"],
        ["/a/job.yml", "# soon\n", "job"],
        ["/a/Job.YAML", "", "job"],
        ["/a/jobc.yaml", "", "job"],
        ["/a/train.job.yaml", "", "job"],
        ["/a/job.json", "", "job"],
        ["/a/targets.yaml", "", "targets"],
        ["/a/myjob.yaml", "", undefined],
        ["/a/job.txt", "", undefined],
        ["/a/job.yaml/notes.md", "", undefined],
        ["/a/jobs.yaml", "", undefined],
    ]);
});

test("a mistake in a key does not make a job somebody else's", () => {
    check([
        ["/a/job.yaml", "verson: 1\n", "job"],
        ["/a/job.yaml", "version: 1\nkind: x\nroles:\n", "job"],
        ["/a/job.yaml", "version: 1\nroles:\n  a: {\n", "job"],
        ["/a/targets.yaml", "version: 1\ntargets: {}\n", "targets"],
    ]);
});

test("other programs' files stay theirs, whatever their names", () => {
    check([
        ["/a/job.yaml", "apiVersion: batch/v1\nkind: Job\n", undefined],
        ["/a/job.yaml", "---\napiVersion: batch/v1\nkind: Job\n", undefined],
        ["/a/job.json", '{"apiVersion": "batch/v1", "kind": "Job"}', undefined],
        ["/a/job.yml", "on: push\njobs:\n  a:\n", undefined],
        ["/a/job.yaml", "# steps\n- run: x\n", undefined],
        ["/a/targets.yaml", "- targets: [a:1]\n", undefined],
        ["/a/compose.yaml", "version: 1\nservices: {}\n", undefined],
        ["/a/values.yaml", "roles: []\n", undefined],
        ["/a/out/plan.json", '{"version": 1, "jobs": []}', undefined],
    ]);
});

test("keys at the top level make a job of any file", () => {
    check([
        ["/a/train.yaml", "version: 1\nname: x\nroles:\n  a: {run: x}\n", "job"],
        ["/a/train.yaml", "name: x\nx:\n  version: 1\n  roles: {}\n", undefined],
        ["/a/train.json", '// mine\n{"version": 1, "roles": {}}', "job"],
        ["/a/train.json", '{"x": {"version": 1, "roles": {}}}', undefined],
    ]);
});

test("a modeline decides", () => {
    const line = (schema: string): string => `# yaml-language-server: $schema=${schema}\nversion: 1\n`;
    check([
        ["/a/x.yaml", line("https://example.com/schemas/job.v1.schema.json"), "job"],
        ["/a/x.yaml", line("../schemas/targets.v1.schema.json"), "targets"],
        ["/a/job.yaml", line("https://example.com/other.json"), undefined],
        ["/a/x.json", '{"$schema": "../job.v1.schema.json"}', "job"],
    ]);
});

test("OpenPAI's formats are jobs that our schema does not fit", () => {
    check([
        ["/a/job.yaml", "protocolVersion: 2\nname: x\ntype: job\njobRetryCount: 0\n", "openpai"],
        ["/a/x.json", '{"jobName": "x", "taskRoles": [{"version": 1}]}', "openpai"],
    ]);
});

test("keys are read past comments, quotes and what is not finished", () => {
    assert.deepEqual([...topLevelKeys("a: 1\n'b c': 2\n\"d\":\n  e: 3\n#f: 4\ng:h\nurl: http://x\n")], ["a", "b c", "d", "url"]);
    assert.deepEqual([...topLevelKeys('/* { */ {"a": [{"b": 1}], // "c": 2\n "d": ":", "e": {"f"')], ["a", "d", "e"]);
    assert.equal(isForeign("- a\n"), true);
    assert.equal(isForeign("a:\n- b\n"), false);
});

test("a long file is read in no time", () => {
    const text = `version: 1\n${"x: {a: [1, 2, 3]}\n".repeat(50_000)}`;
    const start = performance.now();
    recognise("/a/x.yaml", text);
    recognise("/a/x.json", `{${'"x": {"a": [1, 2, 3]},\n'.repeat(50_000)}`);
    assert.ok(performance.now() - start < 1000);
});
