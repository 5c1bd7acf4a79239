// What is written and not submitted yet.

import type { Entry } from "./upload";

export interface Draft {
    text: string;
    place: string;
    files: Entry[];
    upload: string;
    template: string;
    /** What the job does not have of the file that it was made of. */
    notes: string[];
}

export const EMPTY: Draft = { text: "", place: "", files: [], upload: "", template: "", notes: [] };

/** A draft outlives a reload; each tab of the browser has its own. */
export function restored(key: string): Draft | null {
    try {
        return { ...EMPTY, ...(JSON.parse(sessionStorage.getItem(key) ?? "null") as Draft) };
    } catch {
        return null;
    }
}

export const isKept = (key: string): boolean => sessionStorage.getItem(key) !== null;
