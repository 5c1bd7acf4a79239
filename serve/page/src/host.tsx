// The host: GPUs with who has them, images, and what jobc finds missing.

import { useState } from "preact/hooks";

import { bytes, count } from "./format";
import { jobAddress } from "./route";
import { useDocument, useTitle } from "./use";

interface Gpu {
    vendor: string;
    index: number;
    uuid: string | null;
    name: string;
    memory_bytes: number | null;
    memory_used: number | null;
    processes: { pid: number; name?: string | null; memory_bytes?: number | null }[];
    state?: { temperature_celsius?: number | null; utilization_percent?: number | null; power_milliwatts?: number | null };
}

interface Lease {
    device: { vendor: string; gpu: number; mig?: number };
    name: string;
    job: string;
    user: number;
    slice?: { memory_bytes?: number; cores_percent?: number; by: string };
}

interface Gpus {
    driver: { version: string; cuda: string | null } | null;
    gpus: Gpu[];
    notes: string[];
    leases: Lease[];
    waiting?: { place: number; job: string; user: number; waits_for: string }[];
}

interface Check {
    subject: string;
    name: string;
    status: "ok" | "limited" | "missing" | "failed";
    found: string;
    purpose: string;
    needed: boolean;
    fix: string[];
}

interface Image {
    name: string | null;
    digest: string;
    platforms: string[];
    size_bytes: number;
    created: string | null;
}

export function Host() {
    useTitle("Host");
    const gpus = useDocument<Gpus>("/gpus", 3000);
    const images = useDocument<Image[]>("/images");
    const [isExamined, examine] = useState(false);
    const doctor = useDocument<{ checks: Check[] }>(isExamined ? "/doctor" : null);
    return (
        <div class="page">
            <h1 tabIndex={-1}>Host</h1>
            <section>
                <h2>GPUs</h2>
                {gpus.problem && <p class="banner problem">{gpus.problem.message}</p>}
                {gpus.data && <Cards {...gpus.data} />}
            </section>
            <section>
                <h2>Images</h2>
                {images.problem && <p class="banner problem">{images.problem.message}</p>}
                {images.data && <Images images={images.data} />}
            </section>
            <section>
                <h2>Doctor</h2>
                {!isExamined && <p>Runs small jobs that end at once, and changes nothing. <button type="button" onClick={() => examine(true)}>Examine this host</button></p>}
                {isExamined && !doctor.data && !doctor.problem && <p class="quiet" role="status">Examining…</p>}
                {doctor.problem && <p class="banner problem">{doctor.problem.message}</p>}
                {doctor.data && <Checks checks={doctor.data.checks} />}
            </section>
        </div>
    );
}

function Cards({ gpus, leases, waiting = [], notes, driver }: Gpus) {
    const holders = (gpu: Gpu): Lease[] => leases.filter(({ device }) => device.vendor === gpu.vendor && device.gpu === gpu.index);
    if (gpus.length === 0) {
        return <p class="quiet">This host has no GPU that jobc can see. Doctor, below, says what it looked for.</p>;
    }
    return (
        <>
            {driver && <p class="quiet">Driver {driver.version}{driver.cuda ? `, CUDA ${driver.cuda}` : ""}</p>}
            <ul class="cards">
                {gpus.map((gpu) => {
                    const has = holders(gpu);
                    const share = gpu.memory_bytes && gpu.memory_used !== null ? gpu.memory_used / gpu.memory_bytes : null;
                    return (
                        <li key={gpu.uuid ?? gpu.index} class={has.length > 0 ? "card taken" : "card"}>
                            <strong>{gpu.index} · {gpu.name}</strong>
                            {gpu.memory_bytes && (
                                <>
                                    <meter min={0} max={1} value={share ?? 0} aria-label={`memory of GPU ${gpu.index}`} />
                                    <span class="quiet">{gpu.memory_used === null ? "" : `${bytes(gpu.memory_used)} of `}{bytes(gpu.memory_bytes)}</span>
                                </>
                            )}
                            <span>{has.length === 0 && gpu.processes.length > 0 ? <span class="state waiting" title={gpu.processes.map(({ pid, name }) => `${name ?? "process"} ${pid}`).join(", ")}>{count(gpu.processes.length, "process")} without a job</span> : has.length === 0 ? <span class="state fine">free</span> : has.map(({ job, slice }) => <span key={job}><a href={jobAddress(job)}>{job}</a>{slice ? ` (${slice.cores_percent ? `${slice.cores_percent} %` : bytes(slice.memory_bytes ?? 0)})` : ""} </span>)}</span>
                        </li>
                    );
                })}
            </ul>
            {notes.map((note) => <p key={note} class="quiet">{note}</p>)}
            {waiting.length > 0 && (
                <>
                    <h3>Waiting</h3>
                    <ol>{waiting.map(({ job, waits_for }) => <li key={job}><a href={jobAddress(job)}>{job}</a>: {waits_for}</li>)}</ol>
                </>
            )}
        </>
    );
}

function Images({ images }: { images: Image[] }) {
    if (images.length === 0) {
        return <p class="quiet">No image is stored yet. A job pulls or builds what it names.</p>;
    }
    return (
        <div class="scroll">
            <table class="plain-table">
                <thead><tr><th scope="col">Name</th><th scope="col">Platform</th><th scope="col" class="number">Size</th><th scope="col">Created</th><th scope="col">Digest</th></tr></thead>
                <tbody>
                    {images.map(({ name, digest, platforms, size_bytes, created }) => (
                        <tr key={`${name} ${digest}`}>
                            <td>{name ?? "—"}</td>
                            <td>{platforms.join(", ")}</td>
                            <td class="number">{bytes(size_bytes)}</td>
                            <td>{created?.split("T")[0] ?? ""}</td>
                            <td><code>{digest.replace(/^sha256:/, "").slice(0, 12)}</code></td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}

const SIGNS = { ok: ["fine", "✓"], limited: ["waiting", "!"], missing: ["still", "–"], failed: ["bad", "✕"] } as const;

function Checks({ checks }: { checks: Check[] }) {
    const order = { failed: 0, limited: 1, missing: 2, ok: 3 };
    const sorted = [...checks].sort((a, b) => order[a.status] - order[b.status]);
    return (
        <ul class="checks">
            {sorted.map(({ name, status, found, purpose, fix }) => {
                const [kind, sign] = SIGNS[status] ?? SIGNS.missing;
                return (
                    <li key={name}>
                        <span class={`state ${kind}`}><span aria-hidden="true">{sign}</span> {status}</span>
                        <div>
                            <strong>{purpose}</strong>
                            <div class="quiet">{found}</div>
                            {status !== "ok" && fix.map((line) => <pre key={line}>{line}</pre>)}
                        </div>
                    </li>
                );
            })}
        </ul>
    );
}
