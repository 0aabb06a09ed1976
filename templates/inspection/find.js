// Finds published markets, and explains the others: quarantined, taken down, withdrawn.

// A phone shows fewer rows at once, so that what follows stays within reach.
const STEP = matchMedia("(max-width: 44rem)").matches ? 10 : 25;
// More verdicts than this would push the matching markets out of sight.
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
let shownQuarantined = STEP;

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
  const page = pageLink(item.id, "↗", "its page on the site");
  const detailOnly = FX.has(item.id) ? element("span", { class: "quiet" }, " in no list: member of an FX family") : null;
  return element(
    "tr", null,
    element("td", null, question, page && " ", page, detailOnly),
    element("td", null, badge(item.status)),
    element("td", { class: "n" }, percent(item.prob)),
    element("td", { class: "n wide" }, amount(item.volume)),
    element("td", { class: "n wide" }, number(item.traderCount)),
    element("td", { class: "n wide" }, number(item.fills24h)),
    element("td", { class: "n wide" }, closes(item.closeTime, (text) => text.slice(0, 10))),
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
      found.push(verdict("bad", "Quarantined:", name, `. It breaks the contract: ${row.reason}. Fix the row and build again.`));
    }
  }
  for (const id of SETTINGS.takenDown.filter((taken) => matches(taken))) {
    found.push(verdict("bad", "Taken down:", `${id}. It stays blocked until you run public-markets takedown --undo ${id}.`));
  }
  for (const id of REPORT.run.withdrawn.filter((gone) => matches(gone))) {
    found.push(verdict("", "Withdrawn:", `${id}. This build withdrew it.`));
  }
  for (const gone of REPORT.run.withdrawnEarlier.filter(({ id }) => matches(id))) {
    found.push(verdict("", "Withdrawn:", `${gone.id}. The build of ${moment(gone.asOf)} UTC withdrew it.`));
  }
  return found;
}

function unlisted(query) {
  // The page holds a limited number of markets; the file of any other can be opened by its id.
  if (ITEMS.size === REPORT.markets.published || !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(query)) return [];
  const sentence = `This page holds ${number(ITEMS.size)} of ${number(REPORT.markets.published)} markets. If this one is published, `;
  return [verdict("", "Not on this page.", sentence, marketLink(query, "its detail is here"), ".")];
}

function quarantineLink(query) {
  const link = element("a", { href: "#quarantine" }, "Quarantined");
  link.addEventListener("click", () => {
    if (!byId("quarantine-form")) return;
    byId("quarantine-query").value = query;
    byId("quarantine-fold").open = true;
    filterQuarantine();
  });
  return link;
}

function inNoList(found) {
  const count = found.filter((item) => FX.has(item.id)).length;
  return count ? ` ${number(count)} of them in no list: members of FX families.` : "";
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
    others.push(verdict("", "No such market was published, quarantined, taken down or withdrawn.",
      `It may be ${REPORT.markets.hidden ? `one of the ${number(REPORT.markets.hidden)} hidden markets, or ` : ""}missing from the database, or hidden by its views. See below what to check.`));
  }
  const more = others.length - VERDICTS;
  const rest = more > 0 ? [verdict("", `${number(more)} more`, "matching markets are not public. Refine the search, or see ", quarantineLink(query), ".")] : [];
  byId("verdicts").replaceChildren(...others.slice(0, VERDICTS), ...rest);
  byId("markets").tBodies[0].replaceChildren(...found.slice(0, shownRows).map(marketRow));
  byId("markets").parentElement.hidden = !found.length;
  const elsewhere = everywhere.length - found.length;
  const hidden = elsewhere && status !== "all" ? ` ${number(elsewhere)} with another status.` : "";
  byId("found").textContent = `${number(found.length)} ${found.length === 1 ? "market" : "markets"} published.${inNoList(found)}${hidden}`;
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

// ── quarantined rows ──

function filterQuarantine() {
  const matches = matcher(byId("quarantine-query").value);
  const relation = byId("quarantine-relation").value;
  const found = REPORT.quarantined.filter(
    (row) => (!relation || row.relation === relation) && matches(row.relation, row.key, row.title || "", row.reason),
  );
  byId("quarantine-rows").tBodies[0].replaceChildren(...found.slice(0, shownQuarantined).map(quarantineRow));
  const most = found.length > shownQuarantined ? ` The first ${number(shownQuarantined)} are shown.` : "";
  byId("quarantine-count").textContent = `${number(found.length)} of ${number(REPORT.quarantined.length)} entries.${most}`;
  byId("quarantine-more").parentElement.hidden = found.length <= shownQuarantined;
}

function quarantineRow(row) {
  const title = row.title ? [element("br"), element("span", { dir: "auto" }, row.title)] : [];
  return element(
    "tr", null,
    element("td", null, row.relation),
    element("td", null, element("span", { class: "id", dir: "auto" }, row.key), ...title),
    element("td", { dir: "auto" }, row.reason),
    element("td", { class: "n" }, number(row.rows)),
  );
}

if (byId("quarantine-form")) {
  byId("quarantine-form").addEventListener("submit", (event) => event.preventDefault());
  const filterAgain = () => {
    shownQuarantined = STEP;
    filterQuarantine();
  };
  byId("quarantine-query").addEventListener("input", filterAgain);
  byId("quarantine-relation").addEventListener("change", filterAgain);
  byId("quarantine-more").addEventListener("click", () => {
    shownQuarantined += STEP;
    filterQuarantine();
  });
  filterQuarantine();
}

// ── what changed: show questions beside ids ──

for (const link of document.querySelectorAll("#changes a[data-market]")) {
  const item = ITEMS.get(link.dataset.market);
  if (item) link.replaceWith(element("span", { class: "id" }, item.id), " ", marketLink(item.id, item.question));
}
