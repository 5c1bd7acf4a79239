// The licenses of the packages in a bundle.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The license of every package, each once. */
export function licenses(metafiles) {
    const directories = metafiles.flatMap(({ inputs }) =>
        Object.keys(inputs).flatMap((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []),
    );
    const texts = [...new Set(directories)].sort().map((directory) => {
        const { name, version, license } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
        const files = readdirSync(directory).filter((entry) => /^(licen[cs]e|thirdpartynotices)/i.test(entry));
        const text = files.map((file) => readFileSync(join(directory, file), "utf8").trim()).join("\n\n");
        return `${name} ${version}, ${license}\n\n${text || "(the package has no license file)"}\n`;
    });
    return texts.join(`${"-".repeat(80)}\n`);
}
