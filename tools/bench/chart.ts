import type { Spread } from './statistics.ts';

export interface ChartPoint extends Spread {
  readonly label: string;
}

export interface Chart {
  readonly title: string;
  /** What the points differ in, and what their values are. */
  readonly across: string;
  readonly up: string;
  /** Whether points are steps of one quantity, so that a line may join them. */
  readonly isLine: boolean;
  /** Medians, and between which values eight of ten are. */
  readonly points: readonly ChartPoint[];
}

const [WIDTH, HEIGHT] = [640, 280];
const [LEFT, RIGHT, TOP, BOTTOM] = [64, 16, 40, 56];
/** Where values are further apart, their axis has a tenfold at each step. */
const LOGARITHMIC = 12;

/** It brings its own background, as the page around may be dark where the system is not. */
const STYLE = `
  svg { --ink: #1f2328; --paper: #ffffff; --faint: #d1d9e0; --line: #0969da }
  @media (prefers-color-scheme: dark) { svg { --ink: #e6edf3; --paper: #0d1117; --faint: #3d444d; --line: #58a6ff } }
  rect { fill: var(--paper) } text { fill: var(--ink); font: 12px system-ui, sans-serif }
  .title { font-size: 14px; font-weight: 600 } .faint { stroke: var(--faint) } .bar { fill: var(--line) }
  .line { stroke: var(--line); stroke-width: 2; fill: none } .range { stroke: var(--ink) }
`;

const escaped = (text: string) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
const short = (value: number) => (value >= 10 ? value.toFixed(0) : String(Number(value.toFixed(2))));
const text = (at: string, what: string) => `<text ${at} text-anchor="middle">${escaped(what)}</text>`;

/** Values of the axis: some five equal steps from 0, or powers of ten. */
export function ticksOf(low: number, high: number): number[] {
  if (high / low > LOGARITHMIC) {
    const first = Math.floor(Math.log10(low * 1.25)); // just below the axis is near enough
    return Array.from({ length: Math.ceil(Math.log10(high)) - first + 1 }, (_, i) => 10 ** (first + i));
  }
  const power = 10 ** Math.floor(Math.log10(high / 4));
  const step = power * ([1, 2, 2.5, 5].find((factor) => power * factor >= high / 5) ?? 10);
  return Array.from({ length: Math.ceil(high / step - 1e-9) + 1 }, (_, i) => Number((i * step).toPrecision(6)));
}

function marks({ isLine, points }: Chart, y: (value: number) => number): string[] {
  const step = (WIDTH - LEFT - RIGHT) / points.length;
  const half = Math.round(Math.min(step * 0.3, 40));
  const places = points.map((point, i) => ({ ...point, x: Math.round(LEFT + step * (i + 0.5)) }));
  const line = places.map(({ x, middle }) => `${x},${y(middle)}`).join(' ');
  const each = places.flatMap(({ label, low, middle, high, x }) => [
    isLine
      ? `<circle class="bar" cx="${x}" cy="${y(middle)}" r="3"/>`
      : `<path class="bar" d="M${x - half} ${HEIGHT - BOTTOM}V${y(middle)}h${2 * half}V${HEIGHT - BOTTOM}z"/>`,
    `<path class="range" d="M${x} ${y(low)}V${y(high)}"/>`,
    text(`x="${x}" y="${y(high) - 6}"`, short(middle)),
    text(`x="${x}" y="${HEIGHT - BOTTOM + 18}"`, label),
  ]);
  return [...(isLine ? [`<polyline class="line" points="${line}"/>`] : []), ...each];
}

/** A small picture that is readable by day, by night, and by ear. */
export function svgOf(chart: Chart): string {
  const { title, across, up, points } = chart;
  const ticks = ticksOf(Math.min(...points.map(({ low }) => low)), Math.max(...points.map(({ high }) => high)));
  const [first = 0, last = 1] = [ticks[0], ticks.at(-1)];
  const scale = first > 0 ? Math.log10 : (value: number) => value;
  const share = (value: number) => (scale(value) - scale(first)) / (scale(last) - scale(first));
  const y = (value: number) => Math.round(HEIGHT - BOTTOM - share(value) * (HEIGHT - TOP - BOTTOM));
  const spoken = points.map(({ label, middle }) => `${label}: ${short(middle)}`).join('; ');
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-labelledby="title desc">`,
    `<title id="title">${escaped(title)}</title>`,
    `<desc id="desc">${escaped(`${up}, by ${across}. ${spoken}`)}</desc>`,
    `<style>${STYLE}</style>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" rx="6"/>`,
    text(`class="title" x="${WIDTH / 2}" y="22"`, title),
    ...ticks.map((tick) => `<path class="faint" d="M${LEFT} ${y(tick)}H${WIDTH - RIGHT}"/>`),
    ...ticks.map((tick) => text(`x="${LEFT - 22}" y="${y(tick) + 4}"`, short(tick))),
    ...marks(chart, y),
    text(`x="${(WIDTH + LEFT) / 2}" y="${HEIGHT - 12}"`, across),
    text(`transform="translate(16 ${(HEIGHT - BOTTOM + TOP) / 2}) rotate(-90)"`, up),
    '</svg>',
  ].join('\n')}\n`;
}
