// Probability as charts: the history in steps, as it holds until the next point, and daily candles. Read either with
// pointer or arrow keys.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 216;
const MARGIN = { top: 10, right: 14, bottom: 26, left: 42 };
const DAY = 86_400_000;

function shape(tag, properties, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const minute = (time) => `${moment(new Date(time).toISOString())} UTC`;
const date = (time) => new Date(time).toISOString().slice(0, 10);

function scales(start, end, width) {
  const inner = width - MARGIN.left - MARGIN.right;
  return {
    x: (time) => MARGIN.left + (end === start ? inner / 2 : ((time - start) / (end - start)) * inner),
    y: (prob) => MARGIN.top + (1 - prob) * (HEIGHT - MARGIN.top - MARGIN.bottom),
    start, end, width,
  };
}

function grid({ x, y, start, end, width }) {
  const drawn = [];
  for (const prob of [0, 0.25, 0.5, 0.75, 1]) {
    drawn.push(shape("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(prob), y2: y(prob) }));
    drawn.push(shape("text", { x: MARGIN.left - 8, y: y(prob) + 4, "text-anchor": "end" }, `${prob * 100}%`));
  }
  const ticks = end === start ? 1 : width < 520 ? 3 : 5;
  const text = end - start < 2 * DAY ? (iso) => iso.slice(5, 16).replace("T", " ") : (iso) => iso.slice(0, 10);
  for (let tick = 0; tick < ticks; tick += 1) {
    const time = ticks === 1 ? start : start + ((end - start) * tick) / (ticks - 1);
    const anchor = ticks === 1 ? "middle" : tick === 0 ? "start" : tick === ticks - 1 ? "end" : "middle";
    const label = text(new Date(time).toISOString());
    drawn.push(shape("text", { x: x(time), y: HEIGHT - 6, "text-anchor": anchor }, label));
  }
  return drawn;
}

// A chart of items that begin at their `time`, in order; `end` is that of the last. `kind` says in words what it shows,
// draws the items, and marks and tells one of them.
function plotted(items, end, kind) {
  const drawing = shape("svg", { class: "chart", role: "img", tabindex: 0, "aria-label": kind.label(items) });
  const readout = element("p", { class: "readout", role: "status" });
  let scale = null;
  let chosen = items.length - 1;

  function draw() {
    scale = scales(items[0].time, end, Math.max(drawing.clientWidth, 240));
    drawing.setAttribute("viewBox", `0 0 ${scale.width} ${HEIGHT}`);
    drawing.replaceChildren(...grid(scale), ...kind.draw(items, scale), shape("g", { class: "at" }));
    mark(false);
  }
  function mark(showsRule) {
    const { at, shapes } = kind.mark(items[chosen], scale);
    const rule = shape("line", { class: "cursor", x1: at, x2: at, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom });
    drawing.querySelector(".at").replaceChildren(...(showsRule ? [rule] : []), ...shapes);
    readout.textContent = kind.tell(items[chosen]);
  }
  drawing.addEventListener("pointermove", (event) => {
    const at = event.clientX - drawing.getBoundingClientRect().left;
    const after = items.findIndex((item) => scale.x(item.time) > at);
    chosen = Math.max((after < 0 ? items.length : after) - 1, 0);
    mark(true);
  });
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -items.length, End: items.length }[event.key];
    if (!step) return;
    event.preventDefault();
    chosen = Math.min(Math.max(chosen + step, 0), items.length - 1);
    mark(true);
  });
  new ResizeObserver(draw).observe(drawing);
  return [drawing, readout];
}

const STEPS = {
  label(points) {
    const [first, last] = [points[0], points[points.length - 1]];
    let [low, high] = [first, first];
    for (const point of points) {
      if (point.prob < low.prob) low = point;
      if (point.prob > high.prob) high = point;
    }
    const at = (point) => `${percent(point.prob)} on ${minute(point.time)}`;
    return `Probability from ${at(first)} to ${at(last)}; lowest ${at(low)}, highest ${at(high)}.`;
  },
  draw(points, { x, y }) {
    let path = `M${x(points[0].time)} ${y(points[0].prob)}`;
    for (const point of points.slice(1)) path += `H${x(point.time)}V${y(point.prob)}`;
    const area = `${path}V${y(0)}H${x(points[0].time)}Z`;
    return [shape("path", { class: "area", d: area }), shape("path", { class: "step", d: path })];
  },
  mark(point, { x, y }) {
    const at = x(point.time);
    return { at, shapes: [shape("circle", { cx: at, cy: y(point.prob), r: 4 })] };
  },
  tell: (point) => `${minute(point.time)}: ${percent(point.prob)}`,
};

const CANDLES = {
  label(candles) {
    const [first, last] = [candles[0], candles[candles.length - 1]];
    const [low, high] = [Math.min(...candles.map((one) => one.low)), Math.max(...candles.map((one) => one.high))];
    return `Daily candles from ${date(first.time)} to ${date(last.time)}: from ${percent(first.open)} to ${percent(last.close)}, lowest ${percent(low)}, highest ${percent(high)}.`;
  },
  draw(candles, { x, y }) {
    const wide = Math.max(x(candles[0].time + DAY) - x(candles[0].time) - 2, 1);
    return candles.flatMap(({ time, open, high, low, close }) => {
      const middle = x(time + DAY / 2);
      const [top, bottom] = [y(Math.max(open, close)), y(Math.min(open, close))];
      // A candle that rose is hollow, one that fell is filled: nobody needs to tell colours apart.
      const body = { x: middle - wide / 2, width: wide, y: top, height: Math.max(bottom - top, 1) };
      return [
        shape("path", { class: "wick", d: `M${middle} ${y(high)}V${top}M${middle} ${bottom}V${y(low)}` }),
        shape("rect", { class: close < open ? "fell" : "rose", ...body }),
      ];
    });
  },
  mark: ({ time }, { x }) => ({ at: x(time + DAY / 2), shapes: [] }),
  tell({ time, open, high, low, close, volume, trades }) {
    const prices = `${date(time)}: open ${percent(open)}, high ${percent(high)}, low ${percent(low)}, close ${percent(close)}`;
    if (trades === null) return prices;
    return `${prices}; volume ${amount(volume)} in ${trades === 1 ? "1 trade" : `${number(trades)} trades`}`;
  },
};

const chart = (points) => plotted(points, points[points.length - 1].time, STEPS);
const candleChart = (candles) => plotted(candles, candles[candles.length - 1].time + DAY, CANDLES);
