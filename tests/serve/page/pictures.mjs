// The pictures of the documentation; only when named: `node tests/serve/page.mjs pictures`.

import { join } from "node:path";

import { REPOSITORY } from "../../editor/check.mjs";

const TRAINING = `version: 1
name: digits
description: two learning rates side by side, and the better one evaluated
image: host
roles:
  prepare:
    resources: {cpu: 0.5, memory: 64MiB}
    run: sleep 2; echo "60000 images, 10 classes"
  train:
    instances: 2
    needs: {prepare: succeeded}
    resources: {cpu: 0.5, memory: 128MiB}
    run: |
      for step in $(seq 10 10 9990); do
        loss=$(awk "BEGIN {srand($step + $JOBC_INDEX); printf \\"%.4f\\", 2.3 * exp(-$step / (120 + 80 * $JOBC_INDEX)) + 0.05 + 0.03 * rand()}")
        printf '\\033[1mstep %d\\033[0m  loss: %s  \\033[36mlr=%s\\033[0m\\n' "$step" "$loss" "$([ $JOBC_INDEX = 0 ] && echo 0.01 || echo 0.003)"
        [ $((step % 100)) -ne 0 ] || printf '\\033[32mcheckpoint written: /output/step-%d.pt\\033[0m\\n' "$step"
        sleep 0.3
      done
  evaluate:
    needs: {train: succeeded}
    resources: {cpu: 0.5, memory: 64MiB}
    run: echo done
`;

export async function pictures({ server }, tab) {
    const images = join(REPOSITORY, "docs", "images");
    await tab.page.setViewportSize({ width: 1180, height: 780 });
    const id = await server.run("digits", TRAINING);
    await tab.go(`/jobs/${id}`);
    await tab.sees(".lines", "step 300", 60);
    await tab.page.mouse.move(0, 0);
    await tab.picture(join(images, "serve-job.png"));
    await tab.button("Stop").click();
    await tab.agree("Stop");

    await tab.page.setViewportSize({ width: 1240, height: 700 });
    await tab.go("/new?template=local-dag");
    await tab.edits();
    await tab.write((await tab.job()).replace("    resources: {cpu: 0.5, memory: 256MiB", "    rxesources: {cpu: 0.5, memory: 256MiB"));
    await tab.page.waitForFunction(() => document.querySelector(".findings li") !== null);
    await tab.page.locator(".outputs button").nth(1).click();
    await tab.page.mouse.move(0, 0);
    await tab.page.waitForTimeout(500);
    await tab.picture(join(images, "serve-new.png"));
    await tab.page.evaluate(() => sessionStorage.clear());
}
