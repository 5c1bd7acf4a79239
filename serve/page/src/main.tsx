// The page of `jobc serve`: its frame, and which page an address is.

import { render } from "preact";
import { useEffect } from "preact/hooks";

import { epoch, leave, lostSince, session, start } from "./api";
import { Confirmation, Help, Toasts } from "./dialogs";
import { Host } from "./host";
import { JobPage } from "./job/page";
import { Jobs } from "./jobs";
import { Later } from "./later";
import { SignIn } from "./sign_in";
import { listen, useRoute } from "./route";
import { useNow } from "./use";
import { useValue } from "./value";

/** The editor's styles are a file of their own, which only its page loads. */
const editorStyle = (): Promise<void> =>
    new Promise((resolve) => {
        const href = document.querySelector<HTMLMetaElement>('meta[name="editor-style"]')?.content ?? "";
        if (document.querySelector(`link[href="${href}"]`)) {
            resolve();
            return;
        }
        const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
        link.onload = link.onerror = () => resolve();
        document.head.prepend(link);
    });
const newPage = () => Promise.all([import("./new/page"), editorStyle()]).then(([{ NewPage }]) => NewPage);
const sweepPage = () => import("./sweep").then(({ Sweep }) => Sweep);

function Page() {
    const { parts, query } = useRoute();
    const [name = "jobs", ref = "", more] = parts;
    if (name === "jobs" && ref === "") {
        return <Jobs />;
    }
    if (name === "jobs" && more === "again") {
        return <Later key={`again ${ref}`} load={newPage} props={{ again: ref }} />;
    }
    if (name === "jobs" && more === undefined) {
        return <JobPage key={ref} id={ref} />;
    }
    if (name === "sweeps" && ref !== "") {
        return <Later key={`sweep ${ref}`} load={sweepPage} props={{ id: ref }} />;
    }
    if (name === "new") {
        return <Later key={`new ${query.get("template") ?? ""}`} load={newPage} props={{} as { again?: string }} />;
    }
    if (name === "host") {
        return <Host />;
    }
    return (
        <div class="page">
            <h1 tabIndex={-1}>No such page</h1>
            <p>
                <a href="/jobs">Jobs</a> has everything that runs and ran.
            </p>
        </div>
    );
}

const LINKS = [["/jobs", "Jobs"], ["/new", "New job"], ["/host", "Host"]] as const;

function Bar() {
    const { parts } = useRoute();
    const who = useValue(session);
    const here = parts[0] === "sweeps" ? "/jobs" : `/${parts[0] ?? "jobs"}`;
    return (
        <header class="bar">
            <a class="brand" href="/jobs" aria-label="jobc, all jobs">jobc</a>
            <nav aria-label="Pages">
                {LINKS.filter(([href]) => href !== "/new" || who?.access !== "read").map(([href, title]) => (
                    <a key={href} href={href} aria-current={here === href ? "page" : undefined}>{title}</a>
                ))}
            </nav>
            <span class="space" />
            {who?.access === "read" && <span class="badge" title="This link shows jobs, and changes nothing">read only</span>}
            {who && (
                <span class="who" title={`jobc ${who.version}`}>
                    {who.user}
                </span>
            )}
            {who && <button type="button" class="plain leave" onClick={() => void leave()}>Sign out</button>}
        </header>
    );
}

/** Says that the server does not answer, and for how long. */
function Lost() {
    const since = useValue(lostSince);
    const now = useNow(since === null ? null : 1000);
    return (
        <div role="status" class={since === null ? "lost-area" : "lost-area lost"}>
            {since !== null && (
                <>
                    <strong>The server does not answer</strong> for {Math.max(1, Math.round((now - since) / 1000))} s. Jobs keep running without it; the page goes on by itself when it is back.
                </>
            )}
        </div>
    );
}

function App() {
    const who = useValue(session);
    useValue(epoch);
    useEffect(() => {
        void start();
    }, []);
    return (
        <>
            <Bar />
            <Lost />
            <main>{who === undefined ? <p class="quiet loading">Loading…</p> : who === null ? <SignIn /> : <Page />}</main>
            <Confirmation />
            <Help />
            <Toasts />
        </>
    );
}

listen();
const root = document.getElementById("app") as HTMLElement;
root.replaceChildren();
render(<App />, root);
