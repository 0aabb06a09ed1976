// Shared by all parts of the page: its data, safe elements, and number formats. Market texts come from strangers: they
// enter the page as text nodes and attributes only, never as markup.
"use strict";

const SETTINGS = JSON.parse(document.getElementById("settings").textContent);
const DATA = JSON.parse(document.getElementById("data").textContent);
const REPORT = SETTINGS.report;
const ITEMS = new Map(DATA.items.map((item) => [item.id, item]));
const EXCERPTS = new Map(DATA.excerpts.map((excerpt) => [excerpt.id, excerpt]));
const FX = new Set(DATA.fx);
// The addresses of markets' pages on the operator's site, as far as they have any.
const URLS = new Map(Object.entries(DATA.urls));
// `serve` shows this page on the API's host; from disk there is no API.
const IS_SERVED = location.protocol !== "file:";

const byId = (id) => document.getElementById(id);

function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

const number = (value, digits = 0) =>
  value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const amount = (value) => (value >= 1e12 ? value.toExponential(3) : number(value, value < 1000 ? 2 : 0));
const percent = (prob) => `${number(prob * 100, 1)}%`;
const price = (value) => (value === null ? "n/a" : number(value, 3));
const moment = (text) => `${text.slice(0, 10)} ${text.slice(11, 16)}`;
// Views write the year 9999 for a market that closes at no set time.
const closes = (text, shown = moment) => (text.startsWith("9999") ? "none" : shown(text));
const badge = (status) => element("span", { class: `badge ${status}` }, status);
const detailKey = (id) => `${SETTINGS.details}/${id.slice(0, 2)}/${id}.json`;

function marketLink(id, ...text) {
  return element("a", { href: detailKey(id), "data-market": id, dir: "auto" }, ...text);
}

function pageLink(id, text, label) {
  const href = URLS.get(id);
  return href ? element("a", { class: "page", href, "aria-label": label || false }, text) : null;
}

for (const part of document.querySelectorAll(".needs-script")) part.hidden = false;
