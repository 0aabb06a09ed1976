// One market, in a dialog with its own address: `#market=<id>`.

const MARKER = "#market=";

// Unfolds an excerpt, as generator/builder/inspection/excerpts.py wrote it.
function unfolded(short) {
  const [count, start, ...flat] = short.history;
  const points = [];
  for (let place = 0; place < flat.length; place += 2) {
    points.push({ time: Date.parse(start) + flat[place] * 1000, prob: flat[place + 1] / 1000 });
  }
  const levels = ([total, ...some]) => ({ total, rows: some.map(([at, size]) => ({ price: at, amount: size })) });
  const [fills, ...latest] = short.fills;
  return {
    item: ITEMS.get(short.id),
    description: short.description + (short.isCut ? " …" : ""),
    pools: short.pools, pause: short.pause, fx: short.fx,
    bids: levels(short.bids), asks: levels(short.asks),
    fills: { total: fills, rows: latest.map(([timestamp, paid, size, shares]) => ({ timestamp, price: paid, amount: size, shares })) },
    points, pointCount: count, candles: candlesOf(short),
  };
}

function candlesOf({ candles: [first, ...flat] = [] }) {
  const found = [];
  for (let place = 0; place < flat.length; place += 7) {
    const [days, open, high, low, close, volume, trades] = flat.slice(place, place + 7);
    found.push({
      time: Date.parse(first) + days * DAY, open: open / 1000, high: high / 1000, low: low / 1000, close: close / 1000, volume, trades,
    });
  }
  return found;
}

// The API's response, with the candles of the excerpt, if there are any: it has none.
function whole({ market, orderBook, recentFills, probHistory }) {
  const excerpt = EXCERPTS.get(market.id);
  const all = (rows) => ({ total: rows.length, rows });
  return {
    item: market,
    description: market.description || "",
    pools: [market.poolYes, market.poolNo], pause: market.tradingPauseReason, fx: market.fxFamilyMember,
    bids: all(orderBook.bids), asks: all(orderBook.asks), fills: all(recentFills),
    points: probHistory.map((point) => ({ time: Date.parse(point.timestamp), prob: point.prob })),
    pointCount: probHistory.length, candles: excerpt ? candlesOf(excerpt) : [],
  };
}

function fact(name, ...value) {
  return element("div", null, element("dt", null, name), element("dd", null, ...value));
}

function facts({ item, pools, pause, fx }) {
  const shown = [
    fact("Probability", percent(item.prob)), fact("Volume", amount(item.volume)),
    fact("Traders", number(item.traderCount)), fact("Fills in 24 h", number(item.fills24h)),
  ];
  const more = item.resolution ? ` as ${item.resolution}` : item.acceptingBets ? ", takes bets" : "";
  const lines = [
    ["Status", element("span", null, badge(item.status), more)],
    ["Created", moment(item.createdAt)], ["Last activity", moment(item.lastActivityAt)], ["Closes", closes(item.closeTime)],
  ];
  if (item.resolvedAt) lines.push(["Resolved", moment(item.resolvedAt)]);
  if (pools) lines.push(["Pools", `${amount(pools[0])} YES, ${amount(pools[1])} NO`]);
  if (pause) lines.push(["Trading is paused", pause]);
  if (fx) lines.push(["FX family", `${fx.title}: ${fx.instrument} ${fx.direction === "gte" ? "≥" : "≤"} ${fx.thresholdValue}, ${fx.weekStart} to ${fx.weekEnd}, ${fx.source}`]);
  const rows = lines.map(([name, value]) =>
    element("tr", null, element("th", { scope: "row" }, name), element("td", { dir: "auto" }, value)));
  const table = element("table", { class: "plain facts" }, element("tbody", null, ...rows));
  return [element("dl", { class: "figures small" }, ...shown), table];
}

function table(caption, heads, rows) {
  const cells = (tag, values) => values.map((value) => element(tag, { class: "n" }, value));
  return element(
    "table", { class: "plain" },
    element("caption", null, caption),
    element("thead", null, element("tr", null, ...heads.map((head) => element("th", { class: "n", scope: "col" }, head)))),
    element("tbody", null, ...rows.map((row) => element("tr", null, ...cells("td", row)))),
  );
}

const some = ({ total, rows }) => (total > rows.length ? `${rows.length} of ${number(total)}` : number(total));

function book({ bids, asks }) {
  const side = (name, levels) => table(
    `${name}, best first (${some(levels)})`, ["Price", "Amount"],
    levels.rows.map((level) => [price(level.price), amount(level.amount)]),
  );
  if (!bids.total && !asks.total) return element("p", { class: "quiet" }, "No public orders.");
  return element("div", { class: "books" }, side("Bids", bids), side("Asks", asks));
}

function latestFills({ fills }) {
  if (!fills.total) return element("p", { class: "quiet" }, "No fills.");
  const rows = fills.rows.map((fill) => [moment(fill.timestamp), price(fill.price), amount(fill.amount), amount(fill.shares)]);
  return element("div", { class: "books" }, table(`Newest first (${some(fills)})`, ["Time, UTC", "Price", "Amount", "Shares"], rows));
}

function drawn({ points, pointCount }) {
  if (!points.length) return [element("p", { class: "quiet" }, "No history.")];
  const thinned = pointCount > points.length ? [element("p", { class: "quiet" }, `Drawn from ${points.length} of ${number(pointCount)} points.`)] : [];
  return [...chart(points), ...thinned];
}

function candlesDrawn({ candles }) {
  return candles.length ? [element("h3", null, "Daily candles, UTC"), ...candleChart(candles)] : [];
}

function sources(id) {
  const links = [element("a", { href: detailKey(id) }, "detail as JSON")];
  if (IS_SERVED) links.push(", ", element("a", { href: `${SETTINGS.api.markets}/${id}` }, "the API's answer"));
  const page = pageLink(id, "its page on the site");
  if (page) links.push(", ", page);
  return element("p", null, "In full: ", ...links, ". ", element("span", { class: "id" }, id));
}

function render(model) {
  byId("market-title").textContent = model.item.question;
  const description = model.description || "No description.";
  byId("market-body").replaceChildren(
    ...facts(model),
    element("h3", null, "Probability"), ...drawn(model), ...candlesDrawn(model),
    element("h3", null, "Order book"), book(model),
    element("h3", null, "Recent fills"), latestFills(model),
    element("h3", null, "Rules"), element("p", { class: "description", dir: "auto" }, description),
    sources(model.item.id),
  );
}

// A page opened from disk may not read other files, but a person may choose one.
function picker(id) {
  const field = element("input", { type: "file", accept: ".json,application/json", id: "market-file" });
  const said = element("p", { class: "quiet", role: "status" });
  field.addEventListener("change", async () => {
    try {
      render(whole(JSON.parse(await field.files[0].text())));
    } catch {
      said.textContent = "This file is not the detail of a market.";
    }
  });
  const label = element("label", { for: "market-file" }, `To show the market here, choose ${detailKey(id)}`);
  return [element("p", null, label, field), said];
}

function renderUnread(id) {
  const item = ITEMS.get(id);
  byId("market-title").textContent = item ? item.question : "A market";
  byId("market-body").replaceChildren(
    ...(item ? facts({ item }) : []),
    element("p", null, `This page has excerpts of only the ${number(EXCERPTS.size)} most popular markets.`),
    ...(IS_SERVED ? [] : picker(id)),
    sources(id),
  );
}

async function renderServed(id) {
  const answer = await fetch(`${SETTINGS.api.markets}/${id}`);
  if (!answer.ok) return;
  const body = await answer.json();
  if (location.hash === MARKER + id) render(whole(body));
}

function openNamed() {
  const dialog = byId("market");
  const id = location.hash.startsWith(MARKER) ? location.hash.slice(MARKER.length) : "";
  if (!/^[0-9a-f-]{36}$/.test(id)) {
    if (dialog.open) dialog.close();
    return;
  }
  if (EXCERPTS.has(id)) render(unfolded(EXCERPTS.get(id)));
  else renderUnread(id);
  // If the server is gone, the page keeps what it shows.
  if (IS_SERVED) renderServed(id).catch(() => {});
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  byId("market-title").focus();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-market]");
  // With a modifier key, follow the link to the market's file.
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  location.hash = MARKER + link.dataset.market;
});
byId("market").addEventListener("click", (event) => {
  if (event.target === byId("market")) byId("market").close();
});
byId("market").addEventListener("close", () => {
  // Neither scroll nor add an entry to the history.
  if (location.hash.startsWith(MARKER)) history.replaceState(null, "", location.href.split("#")[0]);
});
window.addEventListener("hashchange", openNamed);
openNamed();
