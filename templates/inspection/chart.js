// A probability history as a step chart: a probability holds until the next point. Read it with pointer or arrow keys.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 216;
const MARGIN = { top: 10, right: 14, bottom: 26, left: 42 };

function shape(tag, properties, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function described(points) {
  const [first, last] = [points[0], points[points.length - 1]];
  let [low, high] = [first, first];
  for (const point of points) {
    if (point.prob < low.prob) low = point;
    if (point.prob > high.prob) high = point;
  }
  const at = (point) => `${percent(point.prob)} on ${moment(new Date(point.time).toISOString())} UTC`;
  return `Probability from ${at(first)} to ${at(last)}; lowest ${at(low)}, highest ${at(high)}.`;
}

function scales(points, width) {
  const [start, end] = [points[0].time, points[points.length - 1].time];
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
  const ticks = end === start ? 1 : width < 420 ? 3 : 5;
  const text = end - start < 2 * 86_400_000 ? (iso) => iso.slice(5, 16).replace("T", " ") : (iso) => iso.slice(0, 10);
  for (let tick = 0; tick < ticks; tick += 1) {
    const time = ticks === 1 ? start : start + ((end - start) * tick) / (ticks - 1);
    const anchor = ticks === 1 ? "middle" : tick === 0 ? "start" : tick === ticks - 1 ? "end" : "middle";
    const label = text(new Date(time).toISOString());
    drawn.push(shape("text", { x: x(time), y: HEIGHT - 6, "text-anchor": anchor }, label));
  }
  return drawn;
}

function line(points, { x, y }) {
  let path = `M${x(points[0].time)} ${y(points[0].prob)}`;
  for (const point of points.slice(1)) path += `H${x(point.time)}V${y(point.prob)}`;
  const area = `${path}V${y(0)}H${x(points[0].time)}Z`;
  return [shape("path", { class: "area", d: area }), shape("path", { class: "step", d: path })];
}

function chart(points) {
  const drawing = shape("svg", { class: "chart", role: "img", tabindex: 0, "aria-label": described(points) });
  const readout = element("p", { class: "readout", role: "status" });
  let scale = null;
  let chosen = points.length - 1;

  function draw() {
    const width = Math.max(drawing.clientWidth, 240);
    scale = scales(points, width);
    drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    drawing.replaceChildren(...grid(scale), ...line(points, scale), shape("g", { class: "at" }));
    mark(false);
  }
  function mark(showsRule) {
    const point = points[chosen];
    const [x, y] = [scale.x(point.time), scale.y(point.prob)];
    const rule = shape("line", { class: "cursor", x1: x, x2: x, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom });
    drawing.querySelector(".at").replaceChildren(...(showsRule ? [rule] : []), shape("circle", { cx: x, cy: y, r: 4 }));
    readout.textContent = `${moment(new Date(point.time).toISOString())} UTC: ${percent(point.prob)}`;
  }
  drawing.addEventListener("pointermove", (event) => {
    const at = event.clientX - drawing.getBoundingClientRect().left;
    const after = points.findIndex((point) => scale.x(point.time) > at);
    chosen = Math.max((after < 0 ? points.length : after) - 1, 0);
    mark(true);
  });
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -points.length, End: points.length }[event.key];
    if (!step) return;
    event.preventDefault();
    chosen = Math.min(Math.max(chosen + step, 0), points.length - 1);
    mark(true);
  });
  new ResizeObserver(draw).observe(drawing);
  return [drawing, readout];
}
