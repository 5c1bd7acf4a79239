// What the page shows, as a fragment of its address. The part after `#` is sent to no server.

/** The files that are edited, which of them is the job, and the target. */
export interface Project {
    main: string;
    files: Record<string, string>;
    target: string;
}

/** Fragments begin with the version of their form, and the length of what follows. */
const FORM = /^#1=(?:(\d+)\.([\w-]*))?/;

/** The longest fragment that every browser takes. */
const MAX = 64 * 1024;

/** The fragment of a project; throws if it is too long. */
export async function encode(project: Project): Promise<string> {
    const packed = new Blob([JSON.stringify(project)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
    const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
    const text = btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    if (text.length > MAX) {
        throw new Error(`the files need a link of ${Math.ceil(text.length / 1024)} KiB, more than the ${MAX / 1024} KiB that all browsers take`);
    }
    return `#1=${text.length}.${text}`;
}

/** The project of a fragment; undefined where there is none; throws if it is cut off or damaged. */
export async function decode(fragment: string): Promise<Project | undefined> {
    const found = FORM.exec(fragment);
    if (found === null) {
        return undefined;
    }
    const [, length, text = ""] = found;
    if (length === undefined || text.length < Number(length)) {
        throw new Error("the link is cut off: copy it again, up to its last character");
    }
    try {
        const binary = atob(text.slice(0, Number(length)).replaceAll("-", "+").replaceAll("_", "/"));
        const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
        const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
        const project = JSON.parse(await new Response(unpacked).text()) as Project;
        if (typeof project.files[project.main] === "string") {
            return project;
        }
    } catch {
        // Said below, for each kind of damage.
    }
    throw new Error("the link is damaged: copy it again");
}
