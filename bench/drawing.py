"""SVG by hand: what pictures of the report have in common, in the light and in the dark."""

from __future__ import annotations

from html import escape
from typing import Literal

__all__ = ["Anchor", "dot", "line", "path", "picture", "rectangle", "shorten", "text"]

Anchor = Literal["start", "middle", "end"]

# Colours that those who see few of them tell apart; lines differ in their marks and dashes as well.
_STYLE = """
  svg { color-scheme: light dark; }
  .ground { fill: #ffffff; }
  text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
  .title { font-size: 15px; font-weight: 600; }
  .soft { fill: #59636e; }
  .small { font-size: 11px; }
  .grid { stroke: #d1d9e0; stroke-width: 1; }
  .base { stroke: #59636e; stroke-width: 1.2; }
  .curve { fill: none; stroke-width: 2.2; stroke-linejoin: round; stroke-linecap: round; }
  .whisker { stroke: #1f2328; stroke-width: 1.2; }
  .s0 { stroke: #0060a8; } .f0 { fill: #0060a8; }
  .s1 { stroke: #b34700; stroke-dasharray: 7 4; } .f1 { fill: #b34700; }
  .s2 { stroke: #5c5f66; stroke-dasharray: 2 4; } .f2 { fill: #5c5f66; }
  .s3 { stroke: #8a3d78; stroke-dasharray: 9 3 2 3; } .f3 { fill: #8a3d78; }
  .s4 { stroke: #3a8fd0; stroke-dasharray: 4 3; } .f4 { fill: #2a7cbb; }
  .range { stroke-width: 1.2; stroke-dasharray: none; opacity: 0.75; }
  .bar { opacity: 0.85; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; }
    text { fill: #e6edf3; }
    .soft { fill: #9aa4af; }
    .grid { stroke: #2b323b; }
    .base { stroke: #9aa4af; }
    .whisker { stroke: #e6edf3; }
    .s0 { stroke: #58b4f0; } .f0 { fill: #58b4f0; }
    .s1 { stroke: #f0a040; } .f1 { fill: #f0a040; }
    .s2 { stroke: #a9b0b9; } .f2 { fill: #a9b0b9; }
    .s3 { stroke: #d98cc4; } .f3 { fill: #d98cc4; }
    .s4 { stroke: #9ad3fa; } .f4 { fill: #9ad3fa; }
  }
"""


def picture(*, width: float, height: float, title: str, description: str, parts: list[str]) -> str:
    """Put a picture together; title and description are for those who cannot see it."""
    body = "\n".join(f"  {part}" for part in parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"'
        f' width="{width:g}" height="{height:g}" role="img" aria-labelledby="title about">\n'
        f'  <title id="title">{escape(title)}</title>\n'
        f'  <desc id="about">{escape(description)}</desc>\n'
        f"  <style>{_STYLE}  </style>\n"
        f'  <rect class="ground" width="{width:g}" height="{height:g}" rx="6"/>\n'
        f"{body}\n</svg>\n"
    )


def text(x: float, y: float, words: str, look: str = "", *, anchor: Anchor = "start") -> str:
    """Write words."""
    return f'<text x="{x:g}" y="{y:g}" class="{look}" text-anchor="{anchor}">{escape(words)}</text>'


def line(start: tuple[float, float], end: tuple[float, float], look: str) -> str:
    """Draw a straight line."""
    (x1, y1), (x2, y2) = start, end
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{look}"/>'


def path(points: list[tuple[float, float]], look: str) -> str:
    """Draw a line through points."""
    return f'<polyline points="{" ".join(f"{x:g},{y:g}" for x, y in points)}" class="{look}"/>'


def rectangle(corner: tuple[float, float], size: tuple[float, float], look: str) -> str:
    """Draw a bar."""
    (x, y), (width, height) = corner, size
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="{look}"/>'


def dot(x: float, y: float, form: int, look: str) -> str:
    """Draw a mark, of another form for each line."""
    if form == 0:
        return f'<circle cx="{x:g}" cy="{y:g}" r="4" class="{look}"/>'
    corners = {
        1: [(-4, -4), (4, -4), (4, 4), (-4, 4)],
        2: [(0, -5), (5, 4), (-5, 4)],
        3: [(-5, -4), (5, -4), (0, 5)],
        4: [(0, -5), (5, 0), (0, 5), (-5, 0)],
    }[form]
    return (
        f'<polygon points="{" ".join(f"{x + a:g},{y + b:g}" for a, b in corners)}" class="{look}"/>'
    )


def shorten(words: str, longest: int) -> str:
    """Cut words that have no room."""
    return words if len(words) <= longest else f"{words[: longest - 1]}…"
