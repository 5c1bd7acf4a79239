// The largest file that the compiler in a browser gets.

/** In UTF-16 code units, of which a text has no more than bytes. */
const MAX = 512 * 1024;

export function isTooLarge(length: number): boolean {
    return length > MAX;
}

/** What is said of a file that is not compiled. */
export function tooLarge(path: string, text: string): string {
    const bytes = new Blob([text]).size;
    const size = bytes < 1024 * 1024 ? `${Math.round(bytes / 1024)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
    return `${path} has ${size}. Files above ${MAX / 1024} KiB are not compiled in the browser; \`jobc check\` compiles them.`;
}
