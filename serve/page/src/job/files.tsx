// What the job wrote, directory by directory, and what was built of it, to download.

import { useState } from "preact/hooks";

import { apiAddress, path } from "../api";
import { bytes } from "../format";
import { hasEnded } from "../state";
import { Table, type Column } from "../table";
import type { JobDetails, OutputFile, OutputList } from "../types";
import { useDocument } from "../use";

export function Files({ job }: { job: JobDetails }) {
    const [at, open] = useState("");
    const isHere = !job.id.includes("/");
    const where = `${path("jobs", job.id, "outputs")}${at === "" ? "" : `?${new URLSearchParams({ path: at })}`}`;
    const { data, problem } = useDocument<OutputList>(isHere ? where : null, hasEnded(job) ? null : 5000);
    const source = useDocument<{ text: string }>(isHere ? path("jobs", job.id, "source") : null);
    const files = data?.files ?? [];
    const address = (file: string): string => apiAddress(`${path("jobs", job.id, "outputs")}/${file.split("/").map(encodeURIComponent).join("/")}`);
    const nameOf = (file: string): string => file.split("/").at(-1) ?? file;
    const columns: Column<OutputFile>[] = [
        {
            key: "path", title: at === "" ? "Output" : "Name", width: "minmax(10em, 1fr)",
            cell: ({ path: file, directory }) => directory ? <button type="button" class="plain link" onClick={() => open(file)}>{nameOf(file)}/</button> : <a class="cut" href={address(file)} download={nameOf(file)}>{nameOf(file)}</a>,
        },
        { key: "size", title: "Size", width: "8em", isNumber: true, cell: ({ size, directory }) => (directory ? "" : bytes(size)) },
    ];
    if (!isHere) {
        return <p class="quiet nothing">The files are at the target: <code>jobc copy {job.id}:PATH .</code> copies them.</p>;
    }
    const parts = at === "" ? [] : at.split("/");
    return (
        <div class="files">
            <div class="tools">
                <nav aria-label="Directory" class="crumbs">
                    <button type="button" class="plain link" onClick={() => open("")}>outputs</button>
                    {parts.map((part, index) => <span key={index}> / <button type="button" class="plain link" onClick={() => open(parts.slice(0, index + 1).join("/"))}>{part}</button></span>)}
                </nav>
                <span class="space" />
                <a class="button" href={apiAddress(path("jobs", job.id, "artifacts"))} download={`${job.id}.tar`}>Files that were built (tar)</a>
            </div>
            {problem && <p class="quiet nothing">{problem.status === 404 ? "Nothing is there yet." : problem.message}</p>}
            {data && files.length === 0 && <p class="quiet nothing">{at === "" ? "The job has no output." : hasEnded(job) ? "The job wrote nothing here." : "Nothing is here yet."}</p>}
            {files.length > 0 && <div class="frame grow"><Table label="Outputs" columns={columns} rows={files} keyOf={({ path: file }) => file} rowHeight={30} /></div>}
            {data?.truncated && <p class="quiet">There are more files than are listed.</p>}
            {source.data && (
                <details>
                    <summary>Job file</summary>
                    <pre class="source" tabIndex={0} aria-label="job file">{source.data.text}</pre>
                </details>
            )}
        </div>
    );
}
