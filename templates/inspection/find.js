// Finds markets among the published, and says of all others what is known: left out, taken down, withdrawn.

const STEP = 25;
// More than so many verdicts would hide the markets that are there.
const VERDICTS = 3;
const LATEST_FIRST = {
  activity: (item) => item.lastActivityAt,
  volume: (item) => item.volume,
  new: (item) => item.createdAt,
  ended: (item) => item.resolvedAt || item.closeTime,
};
// `popular` is the order of the data. Ties end with the id, as in the API.
const BY_ID = [...DATA.items].sort((one, other) => (one.id < other.id ? -1 : 1));
let shownRows = STEP;

function sorted(sort) {
  const rank = LATEST_FIRST[sort];
  if (!rank) return DATA.items;
  return [...BY_ID].sort((one, other) => {
    const [left, right] = [rank(one), rank(other)];
    return left === right ? 0 : left < right ? 1 : -1;
  });
}

function matcher(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return (...texts) => {
    const text = texts.join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

function marketRow(item) {
  const question = marketLink(item.id, item.question);
  const detailOnly = FX.has(item.id) ? element("span", { class: "quiet" }, " in no list: member of an FX family") : null;
  return element(
    "tr", null,
    element("td", null, question, detailOnly),
    element("td", null, badge(item.status)),
    element("td", { class: "n" }, percent(item.prob)),
    element("td", { class: "n wide" }, amount(item.volume)),
    element("td", { class: "n wide" }, number(item.traderCount)),
    element("td", { class: "n wide" }, number(item.fills24h)),
    element("td", { class: "n wide" }, item.closeTime.slice(0, 10)),
  );
}

function verdict(kind, title, ...sentences) {
  return element("div", { class: `verdict ${kind}` }, element("p", null, element("b", null, title), " ", ...sentences));
}

function verdicts(matches) {
  const found = [];
  for (const row of REPORT.quarantined) {
    if (row.relation === "markets" && matches(row.key, row.title || "")) {
      const name = element("span", { dir: "auto" }, `${row.title || ""} ${row.key}`.trim());
      found.push(verdict("bad", "Left out:", name, `. It breaks the contract: ${row.reason}. Mend the row and build again.`));
    }
  }
  for (const id of SETTINGS.takenDown.filter((one) => matches(one))) {
    found.push(verdict("bad", "Taken down:", `${id}. It stays away until public-markets takedown --undo ${id}.`));
  }
  for (const id of REPORT.run.withdrawn.filter((one) => matches(one))) {
    found.push(verdict("", "Withdrawn:", `${id}. It was public before this build, and is not any more.`));
  }
  for (const one of REPORT.run.withdrawnEarlier.filter((gone) => matches(gone.id))) {
    found.push(verdict("", "Withdrawn:", `${one.id}. It is gone since the build of ${moment(one.asOf)} UTC.`));
  }
  return found;
}

function unlisted(query) {
  // The page holds so many markets only; the file of another one can still be opened by its id.
  if (ITEMS.size === REPORT.markets.published || !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(query)) return [];
  const sentence = `This page holds ${number(ITEMS.size)} of ${number(REPORT.markets.published)} markets. If this one is published, `;
  return [verdict("", "Not in this page.", sentence, marketLink(query, "its detail is here"), ".")];
}

function leftOutLink(query) {
  const link = element("a", { href: "#left-out" }, "Left out");
  link.addEventListener("click", () => {
    if (!byId("left-out-form")) return;
    byId("left-out-query").value = query;
    filterLeftOut();
  });
  return link;
}

function find() {
  const query = byId("query").value.trim();
  const status = byId("find-status").value;
  const matches = matcher(query);
  const states = SETTINGS.statesOfFilter[status];
  const everywhere = DATA.items.filter((item) => matches(item.id, item.question));
  const found = sorted(byId("find-sort").value).filter(
    (item) => states.includes(item.status) && matches(item.id, item.question),
  );
  const others = query ? verdicts(matches) : [];
  if (query && !everywhere.length && !others.length) {
    others.push(...unlisted(query.toLowerCase()));
    others.push(verdict("", "No such market was published, left out, taken down or withdrawn.",
      `It may be one of the ${number(REPORT.markets.hidden)} hidden ones, or not be in the database. See below what to check.`));
  }
  const more = others.length - VERDICTS;
  const rest = more > 0 ? [verdict("", `${number(more)} more`, "that match are not public. Be more precise, or look under ", leftOutLink(query), ".")] : [];
  byId("verdicts").replaceChildren(...others.slice(0, VERDICTS), ...rest);
  byId("markets").tBodies[0].replaceChildren(...found.slice(0, shownRows).map(marketRow));
  byId("markets").parentElement.hidden = !found.length;
  const elsewhere = everywhere.length - found.length;
  const hidden = elsewhere && status !== "all" ? ` ${number(elsewhere)} with another status.` : "";
  byId("found").textContent = `${number(found.length)} ${found.length === 1 ? "market" : "markets"} published.${hidden}`;
  byId("more").parentElement.hidden = found.length <= shownRows;
  byId("asked").textContent = /^[0-9a-f-]{36}$/i.test(query) ? query : "…";
  byId("unknown").open = Boolean(query) && !everywhere.length;
}

function findAgain() {
  shownRows = STEP;
  find();
}

byId("find-form").addEventListener("submit", (event) => event.preventDefault());
byId("query").addEventListener("input", findAgain);
for (const id of ["find-status", "find-sort"]) byId(id).addEventListener("change", findAgain);
byId("more").addEventListener("click", () => {
  const place = shownRows;
  shownRows += STEP;
  find();
  byId("markets").tBodies[0].rows[place].querySelector("a").focus();
});
find();

// ── rows that were left out ──

function filterLeftOut() {
  const matches = matcher(byId("left-out-query").value);
  const relation = byId("left-out-relation").value;
  const found = REPORT.quarantined.filter(
    (row) => (!relation || row.relation === relation) && matches(row.relation, row.key, row.title || "", row.reason),
  );
  byId("left-out-rows").tBodies[0].replaceChildren(...found.slice(0, SETTINGS.shown).map(leftOutRow));
  const most = found.length > SETTINGS.shown ? ` The first ${SETTINGS.shown} are shown.` : "";
  byId("left-out-count").textContent = `${number(found.length)} of ${number(REPORT.quarantined.length)} entries.${most}`;
}

function leftOutRow(row) {
  const title = row.title ? [element("br"), element("span", { dir: "auto" }, row.title)] : [];
  return element(
    "tr", null,
    element("td", null, row.relation),
    element("td", null, element("span", { class: "id", dir: "auto" }, row.key), ...title),
    element("td", { dir: "auto" }, row.reason),
    element("td", { class: "n" }, number(row.rows)),
  );
}

if (byId("left-out-form")) {
  byId("left-out-form").addEventListener("submit", (event) => event.preventDefault());
  byId("left-out-query").addEventListener("input", filterLeftOut);
  byId("left-out-relation").addEventListener("change", filterLeftOut);
}

// ── what changed: ids mean little to people ──

for (const link of document.querySelectorAll("#changes a[data-market]")) {
  const item = ITEMS.get(link.dataset.market);
  if (item) link.replaceWith(element("span", { class: "id" }, item.id), " ", marketLink(item.id, item.question));
}
