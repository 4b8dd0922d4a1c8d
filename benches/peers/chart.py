#!/usr/bin/env python3
"""Draws what peers.py --json has recorded as an SVG: for each case a bar for gpuimg, and one for each peer, as long as the
ratio of its time to gpuimg's.

    benches/peers/chart.py [--check] [JSON [SVG]]      samples/bench/peers.json, docs/pictures/peers.svg

With --check it fails if the SVG is not what it would write.
"""

import json
import sys
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

ROOT = Path(__file__).resolve().parents[2]
TITLES = {
    "png8192": "normalize a PNG of {}², written by OpenCV",
    "own8192": "normalize a PNG of {}², written by gpuimg",
    "png2048": "normalize a PNG of {}²",
    "png256": "normalize a PNG of {}²",
    "rgb4096": "normalize an RGB PNG of {}²",
    "tiff8192": "normalize a TIFF of {}²",
    "pgm8192": "normalize a PGM of {}²",
    "paeth4096": "sum of a PNG of {}²",
}
WIDTH, LEFT, RIGHT = 900, 130, 60
BAR, GAP = 18, 6
OURS, OTHERS, TEXT = "#4e79a7", "#bab0ac", "#222"


def text(x, y, words, anchor="start", size=13, weight="normal"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" fill="{TEXT}">{escape(words)}</text>'


def case(rows, top):
    """The bars of a case: 1 for gpuimg, and for each peer how many times as long it took; also the place below them."""
    bars = [("gpuimg", 1, OURS), *sorted(((row["peer"], row["ratio"], OTHERS) for row in rows), key=lambda bar: bar[1])]
    longest = max(ratio for _, ratio, _ in bars)
    lines = [text(10, top + 14, TITLES[rows[0]["case"]].format(rows[0]["side"]), size=14, weight="bold")]
    y = top + 24
    for name, ratio, colour in bars:
        length = (WIDTH - LEFT - RIGHT) * ratio / longest
        lines.append(text(LEFT - 8, y + 13, name, anchor="end"))
        lines.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>')
        lines.append(text(LEFT + length + 6, y + 13, "1" if name == "gpuimg" else f"{ratio:.1f}"))
        y += BAR + GAP
    return lines, y + 12


def chart(recorded):
    cases = {}
    for row in recorded["rows"]:
        cases.setdefault(row["case"], []).append(row)
    lines, top = [], 10
    for rows in cases.values():
        drawn, top = case(rows, top)
        lines += drawn
    lines.append(text(10, top + 8, "How many times as long as gpuimg each takes: whole processes, file to file, medians of pairs of runs in turns.", size=12))
    lines.append(text(10, top + 26, f"{recorded['machine']}, load {recorded['load']}; {recorded['date']}. Shorter is better.", size=12))
    top += 18
    least = min(row["ratio"] for row in recorded["rows"])
    label = f"Times of gpuimg and other programs for the same jobs: the others take at least {least:.1f} times as long"
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + 20}" font-family="sans-serif" role="img"'
            f" aria-label={quoteattr(label)}>")
    return "\n".join([head, f'<rect width="{WIDTH}" height="{top + 20}" fill="#fff"/>', *lines, "</svg>"]) + "\n"


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    defaults = [ROOT / "samples/bench/peers.json", ROOT / "docs/pictures/peers.svg"]
    source, target = [Path(word) for word in words] + defaults[len(words):]
    svg = chart(json.loads(source.read_text()))
    if "--check" not in sys.argv:
        target.write_text(svg)
    elif target.read_text() != svg:
        sys.exit(f"WRONG: {target} is not drawn from {source}: run benches/peers/chart.py")


if __name__ == "__main__":
    main()
