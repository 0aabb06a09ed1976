// Draws the charts of the history page, as wide as there is room. Questions come from strangers: Plot puts them into
// text nodes. Tables beside the charts have the same figures, for those who cannot see or point.
"use strict";

const read = (id) => JSON.parse(document.getElementById(id).textContent);
const { volume: DAYS, moves: MOVES } = read("candles");
const { calibration: BUCKETS, questions: QUESTIONS } = read("history");
const ACCENT = "var(--accent)";
// The narrowest chart that says anything: while a page is laid out, an element may have no width yet.
const LEAST_WIDTH = 100;
const FONT_SIZE = 12;
// In a chart's axis, percent from 0 to 100.
const PERCENT = { domain: [0, 100], percent: true, grid: true };

const percent = (prob) => `${(100 * prob).toFixed(1)}%`;
const number = (value) => value.toLocaleString("en", { maximumFractionDigits: value < 1000 ? 2 : 0 });
// Isolated, so that a text cannot change the direction of what follows it.
const isolated = (text) => `\u2068${text}\u2069`;
const cut = (text, length) => (text.length > length ? `${[...text].slice(0, length).join("")}…` : text);

function calibration(width) {
  const rows = BUCKETS.map(({ markets, meanProb, resolvedYes }) => ({ markets, prob: meanProb, yes: resolvedYes / markets }));
  const side = Math.min(width, 460);
  return {
    width: side,
    height: side,
    marginLeft: 44,
    marginBottom: 44,
    x: { ...PERCENT, label: "Probability a week before (%)", labelAnchor: "center", labelArrow: "none", labelOffset: 36 },
    y: { ...PERCENT, label: "Resolved YES (%)" },
    r: { range: [3, 14] },
    marks: [
      Plot.link([1], { x1: 0, y1: 0, x2: 1, y2: 1, stroke: "var(--quiet)", strokeDasharray: "5 4" }),
      Plot.dot(rows, {
        x: "prob", y: "yes", r: "markets", fill: ACCENT, fillOpacity: 0.75, stroke: "var(--paper)", clip: false, tip: true,
        title: (row) => `${number(row.markets)} markets at ${percent(row.prob)}\n${percent(row.yes)} resolved YES`,
      }),
    ],
  };
}

function volume(width) {
  const rows = DAYS.map(([day, sum, trades]) => ({ day, start: new Date(day), sum, trades }));
  return {
    width,
    height: 256,
    marginBottom: 36,
    marginLeft: 52,
    x: { type: "utc", label: null, ticks: Math.max(2, Math.floor(width / 90)) },
    y: { grid: true, label: "Volume", tickFormat: "~s", ticks: 5 },
    marks: [
      Plot.rectY(rows, {
        x: "start", interval: "day", y: "sum", fill: ACCENT, inset: width / rows.length < 6 ? 0.5 : 1, rx: 1, tip: true,
        title: (row) => `${row.day}\n${number(row.sum)} in ${number(row.trades)} ${row.trades === 1 ? "trade" : "trades"}`,
      }),
      Plot.ruleY([0], { stroke: "var(--strong)" }),
    ],
  };
}

function movers(width) {
  const known = MOVES.filter(([id]) => id in QUESTIONS);
  const rows = known.map(([id, before, after], place) => ({ question: isolated(cut(QUESTIONS[id], 300)), before, after, place }));
  // Where there is no room beside a question, it stands above what moved.
  const isNarrow = width < 640;
  const margin = isNarrow ? 12 : Math.round(width * 0.42);
  const lineWidth = ((isNarrow ? width : margin) - 24) / FONT_SIZE;
  const question = { y: "place", text: "question", frameAnchor: "left", textAnchor: "start", lineWidth, textOverflow: "ellipsis" };
  return {
    width,
    height: 44 + rows.length * (isNarrow ? 44 : 30),
    marginLeft: margin,
    marginRight: 16,
    marginBottom: 44,
    x: { ...PERCENT, label: "Probability (%)", labelAnchor: "center", labelArrow: "none", labelOffset: 36 },
    y: { type: "band", axis: null },
    marks: [
      Plot.text(rows, isNarrow ? { ...question, dy: -13 } : { ...question, dx: 4 - margin }),
      Plot.ruleY(rows, { y: "place", x1: "before", x2: "after", stroke: ACCENT, strokeWidth: 2, dy: isNarrow ? 7 : 0 }),
      Plot.dot(rows, { x: "before", y: "place", r: 4.5, stroke: ACCENT, strokeWidth: 2, fill: "var(--paper)", dy: isNarrow ? 7 : 0 }),
      Plot.dot(rows, {
        x: "after", y: "place", r: 5, fill: ACCENT, dy: isNarrow ? 7 : 0, tip: true,
        title: (row) => `${row.question}\n${percent(row.before)} → ${percent(row.after)}`,
      }),
    ],
  };
}

for (const [name, chart] of Object.entries({ calibration, volume, movers })) {
  const place = document.getElementById(`${name}-plot`);
  if (!place) continue;
  place.hidden = false;
  let drawn = 0;
  const draw = () => {
    if (place.clientWidth === drawn || place.clientWidth < LEAST_WIDTH) return;
    drawn = place.clientWidth;
    const drawing = Plot.plot({ ...chart(drawn), style: { fontSize: `${FONT_SIZE}px` } });
    // The element around it has the role of an image and its name.
    drawing.setAttribute("aria-hidden", "true");
    place.replaceChildren(drawing);
  };
  new ResizeObserver(draw).observe(place);
}
