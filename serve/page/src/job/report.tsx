// The report that `jobc report` writes, in a frame without scripts and without an address.

import { useEffect, useState } from "preact/hooks";

import { Problem, apiAddress, path, send } from "../api";

export function ReportView({ id }: { id: string }) {
    const [text, set] = useState<string | Problem | null>(null);
    const where = path("jobs", id, "report");
    useEffect(() => {
        send("GET", where, undefined, { headers: { Accept: "text/html" } }).then(async (response) => set(await response.text()), (error: Problem) => set(error));
    }, [where]);
    if (text === null) {
        return <p class="quiet loading">Loading…</p>;
    }
    if (text instanceof Problem) {
        return <p class="banner problem">{text.message}</p>;
    }
    return (
        <div class="report">
            <p class="tools"><a class="button" href={apiAddress(where)} download={`${id}.html`}>Download</a></p>
            <iframe title={`report of ${id}`} sandbox="" srcdoc={text} />
        </div>
    );
}
