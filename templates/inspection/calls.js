// Calls the API of this page's host, and shows the request and the response.

function callTarget() {
  const call = byId("call").selectedOptions[0];
  const values = { status: byId("call-status"), sort: byId("call-sort"), limit: byId("call-limit"), cursor: byId("call-cursor") };
  if (call.dataset.takes === "market") return `${call.value}/${encodeURIComponent(byId("call-market").value.trim())}`;
  if (call.dataset.takes !== "list") return call.value;
  const query = Object.entries(values)
    .filter(([, field]) => field.value.trim())
    .map(([name, field]) => `${name}=${encodeURIComponent(field.value.trim())}`);
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
  showRequest();
}
