// Passes the OpenAPI document to the renderer, in the reader's color scheme.
"use strict";

const documentation = document.getElementById("documentation");
const dark = matchMedia("(prefers-color-scheme: dark)");

function paint() {
  const [theme, paper, ink, accent] = dark.matches
    ? ["dark", "#1d1f23", "#e8e6e1", "#8ab8f5"]
    : ["light", "#ffffff", "#1d1c1a", "#1a5fb4"];
  const colours = { theme, "bg-color": paper, "text-color": ink, "primary-color": accent, "nav-bg-color": paper };
  for (const [name, value] of Object.entries(colours)) documentation.setAttribute(name, value);
}

paint();
dark.addEventListener("change", paint);
documentation.loadSpec(JSON.parse(document.getElementById("document").textContent));
