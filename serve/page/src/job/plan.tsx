// The resolved plan: each role in words, then all of it.

import { bytes, count, cpus } from "../format";
import type { JobDetails, Role } from "../types";

export function PlanView({ job }: { job: JobDetails }) {
    const { plan } = job;
    if (plan === undefined) {
        return <p class="quiet nothing">The record of this job has no plan.</p>;
    }
    return (
        <div class="plan" tabIndex={0} aria-label="plan">
            {plan.params && Object.keys(plan.params).length > 0 && (
                <section>
                    <h2>Parameters</h2>
                    <dl class="pairs">{Object.entries(plan.params).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{String(value)}</dd></div>)}</dl>
                </section>
            )}
            {plan.roles?.map((role) => <RoleView key={role.name} role={role} image={plan.images?.[role.image ?? ""]?.reference} />)}
            <details>
                <summary>All of the plan</summary>
                <pre class="source" tabIndex={0} aria-label="plan.json">{JSON.stringify(plan, null, 2)}</pre>
            </details>
        </div>
    );
}

function RoleView({ role, image }: { role: Role; image: string | undefined }) {
    const { resources = {}, needs = [], command } = role;
    const gpus = resources.gpus ?? resources.gpu;
    const facts = [
        count(role.instances, "instance"),
        resources.cpu_millis ? cpus(resources.cpu_millis) : "",
        resources.memory_bytes ? bytes(resources.memory_bytes) : "",
        gpus ? `GPU ${typeof gpus === "object" ? JSON.stringify(gpus) : String(gpus)}` : "",
        image ?? "",
        ...needs.map(({ role: other, state }) => `after ${other} ${state}`),
    ].filter((it) => it !== "");
    const script = command?.script?.script ?? (command ? JSON.stringify(command) : "");
    return (
        <section>
            <h2>{role.name}</h2>
            <p class="facts">{facts.map((fact) => <span key={fact}>{fact}</span>)}</p>
            {script !== "" && <pre class="source" tabIndex={0} aria-label={`command of ${role.name}`}>{script}</pre>}
        </section>
    );
}
