// Pages whose code is loaded when they are opened.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

export function Later<P extends object>({ load, props }: { load: () => Promise<ComponentType<P>>; props: P }) {
    const [page, set] = useState<{ Page: ComponentType<P> } | Error | null>(null);
    useEffect(() => {
        load().then((Page) => set({ Page }), (error: Error) => set(error));
    }, []);
    if (page === null) {
        return <p class="quiet loading">Loading…</p>;
    }
    if (page instanceof Error) {
        return (
            <div class="page">
                <h1 tabIndex={-1}>This page does not load</h1>
                <p>The server has other files than when the page was opened, or does not answer.</p>
                <p><button type="button" onClick={() => location.reload()}>Load again</button></p>
            </div>
        );
    }
    const { Page } = page;
    return <Page {...props} />;
}
