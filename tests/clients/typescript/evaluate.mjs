// Runs scripts that use the client: `node evaluate.mjs CLIENT`. A line of input is `{ script, given }` in JSON, where
// the script is the body of an async function; the line that it prints then is `{ value }`, or `{ error }`.
import { createInterface } from "node:readline";

const client = process.argv[2];
const scope = { ...(await import(`${client}/index.js`)), ...(await import(`${client}/node.js`)) };

/** Waits that take no time, and are counted. */
scope.waits = [];
scope.wait = async (milliseconds) => scope.waits.push(Math.round(milliseconds));

/** All that comes. */
scope.all = async (things) => {
  const found = [];
  for await (const thing of things) found.push(thing);
  return found;
};

/** What a promise fails with. */
scope.failure = async (promise) => {
  const { name, status, path, details, message, retryAfter } = await promise.then(
    () => ({ message: "it did not fail" }),
    (error) => error,
  );
  return { name, status, path, details, message, retryAfter };
};

const AsyncFunction = (async () => {}).constructor;
for await (const line of createInterface({ input: process.stdin })) {
  const { script, given } = JSON.parse(line);
  scope.waits.length = 0;
  let done;
  try {
    done = { value: await new AsyncFunction("given", ...Object.keys(scope), script)(given, ...Object.values(scope)) };
  } catch (error) {
    done = { error: String(error.stack) };
  }
  console.log(JSON.stringify(done));
}
