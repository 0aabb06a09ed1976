// Runs a rendered Worker in workerd, as its wrangler configuration says. Ends when its input does.
//   node cloudflare.mjs WRANGLER_CONFIGURATION
// It prints the address, then `done` after each line of input, which is a task in JSON:
//   { put: [{ key, file, contentType?, cacheControl? }…] }     { delete: [key…] }     in the bucket
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { Miniflare } from 'miniflare';
import { unstable_getMiniflareWorkerOptions as readConfiguration } from 'wrangler';

const { main, workerOptions } = readConfiguration(process.argv[2]);
const miniflare = new Miniflare({
  ...workerOptions,
  modules: true,
  modulesRoot: dirname(main),
  scriptPath: main,
  host: '127.0.0.1',
  port: 0,
  cf: false, // or it would ask Cloudflare where this machine is
});
console.log(String(await miniflare.ready));

for await (const line of createInterface({ input: process.stdin })) {
  const task = JSON.parse(line);
  const bucket = await miniflare.getR2Bucket('BUCKET');
  const puts = (task.put || []).map(({ key, file, ...httpMetadata }) =>
    // As a string: small Buffers share memory, which the binding would send whole.
    bucket.put(key, readFileSync(file, 'utf8'), { httpMetadata }),
  );
  await Promise.all([...puts, ...(task.delete || []).map((key) => bucket.delete(key))]);
  console.log('done');
}
await miniflare.dispose();
