// Colors of the styles for what draws by itself: canvases and terminals.

/** A color of the theme as it is now, resolved for light or dark. */
export function color(name: string): string {
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
}
