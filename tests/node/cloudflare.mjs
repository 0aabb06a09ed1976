// Runs rendered Workers in workerd, each as its wrangler configuration says. Ends when its input does.
// A line of input is a task in JSON, and so is the line that it prints when that is done:
//   { start: WRANGLER_CONFIGURATION }                          { address } of a Worker with an empty bucket, or { error }
//   { at: address, put: [{ key, file, contentType?, cacheControl? }…], delete: [key…] }     in its bucket: { }
//   { at: address, stop: true }                                { }
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { Miniflare } from 'miniflare';
import { unstable_getMiniflareWorkerOptions as readConfiguration } from 'wrangler';

const running = new Map();

async function start(configuration) {
  const { main, workerOptions } = readConfiguration(configuration);
  const worker = new Miniflare({
    ...workerOptions,
    modules: true,
    modulesRoot: dirname(main),
    scriptPath: main,
    host: '127.0.0.1',
    port: 0,
    cf: false, // or it would ask Cloudflare where this machine is
  });
  try {
    const address = String(await worker.ready);
    running.set(address, worker);
    return { address };
  } catch (error) {
    await worker.dispose();
    return { error: String(error) };
  }
}

async function stop(address) {
  await running.get(address).dispose();
  running.delete(address);
}

async function change(worker, task) {
  const bucket = await worker.getR2Bucket('BUCKET');
  const changes = (task.put || []).map(({ key, file, ...httpMetadata }) => () =>
    // JSON as a string, as small Buffers share memory, which the binding would send whole.
    bucket.put(key, key.endsWith('.json') ? readFileSync(file, 'utf8') : copyOf(readFileSync(file)), { httpMetadata }),
  );
  changes.push(...(task.delete || []).map((key) => () => bucket.delete(key)));
  // Few at a time: each is a connection, and a busy machine resets some of a thousand.
  for (let at = 0; at < changes.length; at += 16) {
    await Promise.all(changes.slice(at, at + 16).map((begin) => begin()));
  }
}

function copyOf(buffer) {
  return Uint8Array.from(buffer).buffer;
}

for await (const line of createInterface({ input: process.stdin })) {
  const task = JSON.parse(line);
  let done = {};
  if (task.start) done = await start(task.start);
  else if (task.stop) await stop(task.at);
  else await change(running.get(task.at), task);
  console.log(JSON.stringify(done));
}
for (const address of [...running.keys()]) await stop(address);
