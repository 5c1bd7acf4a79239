// What the page shows, as a fragment of its address. The part after `#` is sent to no server.

/** The files that are edited, which of them is the job, and the target. */
export interface Project {
    main: string;
    files: Record<string, string>;
    target: string;
}

/** Fragments begin with the version of their form. */
const PREFIX = "#1=";

export async function encode(project: Project): Promise<string> {
    const packed = new Blob([JSON.stringify(project)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
    const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
    return PREFIX + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The project of a fragment; undefined where there is none; throws if it is damaged. */
export async function decode(fragment: string): Promise<Project | undefined> {
    if (!fragment.startsWith(PREFIX)) {
        return undefined;
    }
    const binary = atob(fragment.slice(PREFIX.length).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const project = JSON.parse(await new Response(unpacked).text()) as Project;
    if (typeof project.files?.[project.main] !== "string") {
        throw new Error("it has no job");
    }
    return project;
}
