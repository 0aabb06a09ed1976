// node tests/bench/node/plain.js LISTS OUTPUT: a competent first version, with folders made once.
const fs = require('node:fs');
const path = require('node:path');
const { pages } = require('./pages.js');

const [data, output] = process.argv.slice(2);
const made = new Set();
for (const page of pages(JSON.parse(fs.readFileSync(data, 'utf8')))) {
  const file = path.join(output, page.path);
  const folder = path.dirname(file);
  if (!made.has(folder)) {
    fs.mkdirSync(folder, { recursive: true });
    made.add(folder);
  }
  fs.writeFileSync(file, page.body);
}
