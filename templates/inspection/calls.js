// Calls the API of this page's host, and shows the request and the response.

// Not every variant has all of them.
const PARAMETERS = ["status", "sort", "category", "q", "limit", "cursor"].filter((name) => byId(`call-${name}`));

function callTarget() {
  const call = byId("call").selectedOptions[0];
  const one = byId(`call-${call.dataset.takes}`);
  if (one) return `${call.value}/${encodeURIComponent(one.value.trim())}`;
  if (call.dataset.takes !== "list") return call.value;
  const query = PARAMETERS.map((name) => [name, byId(`call-${name}`).value.trim()])
    .filter(([, value]) => value)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return query.length ? `${call.value}?${query.join("&")}` : call.value;
}

function showRequest() {
  const takes = byId("call").selectedOptions[0].dataset.takes;
  for (const field of document.querySelectorAll("#calls-form [data-for]")) field.hidden = field.dataset.for !== takes;
  byId("call-line").textContent = `curl -i '${location.origin}${callTarget()}'`;
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function showAnswer(answer, text, took) {
  byId("call-status-line").textContent = `${answer.status} ${answer.statusText}`;
  byId("call-headers").textContent = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  byId("call-body").textContent = pretty(text);
  byId("call-answer").hidden = false;
  byId("call-said").textContent = `Answered ${answer.status}, ${number(text.length)} characters, ${Math.round(took)} ms.`;
}

function nextCursor(text) {
  try {
    return JSON.parse(text).nextCursor || "";
  } catch {
    return "";
  }
}

async function send() {
  byId("call-said").textContent = "Waiting …";
  const began = performance.now();
  try {
    const answer = await fetch(callTarget());
    const text = await answer.text();
    showAnswer(answer, text, performance.now() - began);
    byId("call-next").dataset.cursor = nextCursor(text);
  } catch (error) {
    byId("call-said").textContent = `No answer: ${error.message}. Is the server still running?`;
    byId("call-next").dataset.cursor = "";
  }
  byId("call-next").disabled = !byId("call-next").dataset.cursor;
}

// The search of this page knows ids and parts of questions; that of the API knows words, and descriptions, too.
function searchAsReaders() {
  const asked = { status: byId("find-status").value, sort: byId("find-sort").value, q: byId("query").value };
  for (const name of PARAMETERS) byId(`call-${name}`).value = asked[name] || "";
  byId("call").selectedIndex = 0;
  showRequest();
  send();
  byId("calls").scrollIntoView();
}

async function copyRequest() {
  try {
    await navigator.clipboard.writeText(byId("call-line").textContent);
    byId("call-said").textContent = "Copied.";
  } catch {
    // Browsers allow clipboard access on some addresses only; selected text can always be copied.
    getSelection().selectAllChildren(byId("call-line"));
    byId("call-said").textContent = "Selected; copy it with the keyboard.";
  }
}

if (IS_SERVED) {
  byId("calls-off").hidden = true;
  byId("calls-form").hidden = false;
  byId("calls-form").addEventListener("input", showRequest);
  byId("calls-form").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  byId("call-next").addEventListener("click", () => {
    byId("call-cursor").value = byId("call-next").dataset.cursor;
    showRequest();
    send();
  });
  byId("call-copy").addEventListener("click", copyRequest);
  for (const part of document.querySelectorAll(".needs-api")) part.hidden = false;
  if (byId("find-api")) byId("find-api").addEventListener("click", searchAsReaders);
  showRequest();
}
