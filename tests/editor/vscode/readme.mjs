// Takes the screenshots for the extension's README and the guide: completion, a quick fix, and the manifest next to the job. Run
// `node tests/editor/vscode.mjs readme`, and copy them to docs/images by hand.

import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { REPOSITORY, until } from "../check.mjs";
import { shrink } from "./palette.mjs";

export const README = {
    files(directory) {
        cpSync(join(REPOSITORY, "examples", "torchrun-4x8"), directory, { recursive: true, filter: (path) => !path.includes("/out") });
        const job = join(directory, "job.yaml");
        const text = readFileSync(job, "utf8").replace(/^# yaml-language-server.*\n/, "");
        writeFileSync(job, text.replace("instances: 4", "intances: 4").replace("memory: 512GiB", "memory: 512"));
    },
    settings: { "workbench.statusBar.visible": false, "workbench.activityBar.location": "hidden", "breadcrumbs.enabled": false },
    async run(editor, check) {
        await editor.page.setViewportSize({ width: 1080, height: 620 });
        await editor.openFile("job.yaml", null);
        await editor.command("View: Toggle Primary Side Bar Visibility");
        await until("there are no problems", async () => (await editor.problems()).length === 2);
        await editor.focusEditor();
        await editor.goTo(33);
        await editor.goTo(23, 57);
        await editor.quickFixes();
        await editor.page.waitForTimeout(500);
        await small(editor, "editor-fix", 480);
        await editor.takeFix("write `512GiB`");
        await editor.goTo(22, 6);
        await editor.quickFixes();
        await editor.takeFix("write `instances`");
        await until("the problems do not disappear", async () => (await editor.problems()).length === 0);
        await editor.command("View: Toggle Panel Visibility");
        await editor.focusEditor();
        await editor.command("jobc: Show Kubernetes Manifest Beside");
        await until("no manifest is shown", async () => /kind: JobSet/.test(await editor.textOf("job.kubernetes.yaml")));
        await editor.page.waitForTimeout(500);
        await small(editor, "editor-manifest", 620);

        await editor.focusEditor();
        await editor.save();
        await editor.command("View: Close All Editors");
        await editor.openFile("job.yaml", null);
        await editor.goTo(22, 99);
        await editor.press("Enter");
        await editor.suggestions();
        // With the documentation next to the list.
        if (!(await editor.page.locator(".suggest-details-container:visible").count())) {
            await editor.press("Control+Space");
        }
        await editor.page.locator(".suggest-details-container:visible").waitFor();
        await editor.page.waitForTimeout(500);
        await small(editor, "editor-complete", 620);
        check.expect(true, "pictures");
    },
};

/** Takes a screenshot of the upper part of the window, and makes the file smaller. */
async function small(editor, name, height) {
    await editor.picture(name, { clip: { x: 0, y: 0, width: 1080, height } });
    shrink(join(editor.pictures, `${name}.png`));
}
