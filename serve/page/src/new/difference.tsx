// What changes against the run before, before the job is submitted again.

import { useEffect, useRef } from "preact/hooks";

import { count, shown } from "../format";
import type { Difference } from "../types";

interface Props {
    diff: Difference;
    action: string;
    busy: boolean;
    onCancel(): void;
    onConfirm(): void;
}

export function DifferenceView({ diff, action, busy, onCancel, onConfirm }: Props) {
    const dialog = useRef<HTMLDialogElement>(null);
    useEffect(() => dialog.current?.showModal(), []);
    const { fields = [], files = [] } = diff ?? {};
    const isSweep = new Set(fields.flatMap(({ jobs }) => jobs.map(({ job }) => job))).size > 1;
    return (
        <dialog ref={dialog} class="difference" aria-labelledby="difference" onCancel={(event) => { event.preventDefault(); onCancel(); }}>
            <h2 id="difference">{fields.length === 0 ? "Nothing changes" : `What changes: ${count(fields.length, "field")}`}</h2>
            {fields.length === 0 && <p>The plan is the same as that of the run before. The same job runs again.</p>}
            {fields.length > 0 && (
                <div class="scroll" tabIndex={0} aria-label="changes">
                    <table class="plain-table">
                        <thead><tr><th scope="col">Field</th><th scope="col">Before</th><th scope="col">Now</th></tr></thead>
                        <tbody>
                            {fields.slice(0, 500).map(({ field, roles, jobs, old, new: now }, index) => (
                                <tr key={index}>
                                    <th scope="row">{roles.length > 0 ? `${roles.join(", ")}: ` : ""}{field}{isSweep ? <span class="quiet"> {jobs.map(({ job }) => job).slice(0, 3).join(", ")}{jobs.length > 3 ? ` and ${jobs.length - 3} more` : ""}</span> : null}</th>
                                    <td><del>{shown(old)}</del></td>
                                    <td><ins>{shown(now)}</ins></td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
            {files.length > 0 && <p class="quiet">{count(files.length, "built file")} {files.length === 1 ? "differs" : "differ"}.</p>}
            <div class="actions">
                <button type="button" onClick={onCancel}>Back to the text</button>
                <button type="button" class="primary" autofocus disabled={busy} onClick={onConfirm}>{action}</button>
            </div>
        </dialog>
    );
}
