// Every page of every list, as text: what plain Node writes and Eleventy is given.
const crypto = require('node:crypto');

function* pages(lists) {
  for (const { name, generation, items } of lists) {
    for (let limit = 1; limit <= 100; limit++) {
      for (let start = 0; start < Math.max(items.length, 1); start += limit) {
        const end = start + limit;
        let cursor = 'null';
        if (end < items.length) {
          const check = crypto.createHash('sha256').update(`${name}/${generation}/${end}`).digest('hex').slice(0, 10);
          cursor = `"${check}${generation}${end}"`;
        }
        const folder = start === 0 ? 'first' : `${generation}/${limit}-${Math.floor(start / limit / 100)}`;
        const file = start === 0 ? limit : start;
        const body = `{"items":[${items.slice(start, end).join(',')}],"nextCursor":${cursor}}`;
        yield { path: `${name}/${folder}/${file}.json`, body };
      }
    }
  }
}

module.exports = { pages };
