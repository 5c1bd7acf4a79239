// Makes screenshots smaller: reduces a PNG to a palette of at most 256 colors.

import { readFileSync, writeFileSync } from "node:fs";
import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from("89504e470d0a1a0a", "hex");

/** Rewrites a PNG of Chromium in place: 8 bits, RGB or RGBA, not interlaced. */
export function shrink(path) {
    const { width, height, pixels } = decode(readFileSync(path));
    const counts = new Map();
    for (const color of pixels) {
        counts.set(color, (counts.get(color) ?? 0) + 1);
    }
    const palette = choose([...counts].sort((a, b) => b[1] - a[1]).map(([color]) => color));
    const index = new Map([...counts.keys()].map((color) => [color, nearest(palette, color)]));
    const rows = Buffer.alloc((width + 1) * height);
    pixels.forEach((color, i) => (rows[Math.floor(i / width) * (width + 1) + 1 + (i % width)] = index.get(color)));
    const header = Buffer.alloc(13);
    header.writeUInt32BE(width, 0);
    header.writeUInt32BE(height, 4);
    header.set([8, 3], 8);
    const colors = Buffer.from(palette.flatMap(channels));
    const chunks = [["IHDR", header], ["PLTE", colors], ["IDAT", deflateSync(rows, { level: 9 })], ["IEND", Buffer.alloc(0)]];
    writeFileSync(path, Buffer.concat([SIGNATURE, ...chunks.map(([name, data]) => chunk(name, data))]));
}

function decode(file) {
    const [width, height, kind] = [file.readUInt32BE(16), file.readUInt32BE(20), file[25]];
    const data = [];
    for (let at = 8; at < file.length; at += file.readUInt32BE(at) + 12) {
        if (file.toString("latin1", at + 4, at + 8) === "IDAT") {
            data.push(file.subarray(at + 8, at + 8 + file.readUInt32BE(at)));
        }
    }
    const bytes = kind === 6 ? 4 : 3;
    const stride = width * bytes;
    const raw = inflateSync(Buffer.concat(data));
    const pixels = new Uint32Array(width * height);
    let above = Buffer.alloc(stride);
    for (let y = 0; y < height; y++) {
        const filter = raw[y * (stride + 1)];
        const line = Buffer.from(raw.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1)));
        for (let x = 0; x < stride; x++) {
            const [left, up, corner] = [x < bytes ? 0 : line[x - bytes], above[x], x < bytes ? 0 : above[x - bytes]];
            line[x] += [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
        }
        for (let x = 0; x < width; x++) {
            pixels[y * width + x] = line.readUIntBE(x * bytes, 3);
        }
        above = line;
    }
    return { width, height, pixels };
}

/** The filter of the PNG specification, section 9.4. */
function paeth(left, up, corner) {
    const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
    return a <= b && a <= c ? left : b <= c ? up : corner;
}

/** The most frequent colors, at most 256, with a minimum distance between them. */
function choose(colors) {
    for (let apart = 4; ; apart *= 1.3) {
        const palette = [];
        for (const color of colors) {
            if (palette.length <= 256 && palette.every((other) => distance(color, other) >= apart)) {
                palette.push(color);
            }
        }
        if (palette.length <= 256) {
            return palette;
        }
    }
}

function nearest(palette, color) {
    let best = 0;
    palette.forEach((other, i) => {
        best = distance(color, other) < distance(color, palette[best]) ? i : best;
    });
    return best;
}

const channels = (color) => [color >> 16, (color >> 8) & 255, color & 255];

function distance(a, b) {
    const [one, other] = [channels(a), channels(b)];
    return one.reduce((sum, value, i) => sum + Math.abs(value - other[i]), 0);
}

function chunk(name, data) {
    const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body) >>> 0);
    return Buffer.concat([length, body, sum]);
}
