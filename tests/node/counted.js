
// Added to a rendered Worker, whose `caches.default` is `counted` here: it counts subrequests, has the bucket fail and
// purges the cache, as headers of a request ask. Requests must come one after another.
//   X-Lose: TEXT       the bucket lacks the first object read whose key contains this
//   X-Fail: TEXT       it cannot read objects whose key contains this
//   X-Then-Head: KEY   once an object was lost, heads of the index are this object
//   X-Purge: PREFIX    instead of all that: ends the cached copies whose address begins so
// An answer tells in X-Subrequests how many gets, matches and puts it took.
const CONNECTIONS = 6;
const copies = new Set();
let counts, asked, isLost;

const counted = {
  match(address) {
    counts.match += 1;
    return caches.default.match(address);
  },
  put(address, response) {
    counts.put += 1;
    copies.add(address);
    return caches.default.put(address, response);
  },
};

// As Cloudflare has it: a body holds its connection until it is read, and who waits for another forever gets an error.
function counting(bucket) {
  const waiting = [];
  let open = 0;
  function close() {
    open -= 1;
    if (waiting.length > 0) waiting.shift()();
  }
  async function connect() {
    if (open === CONNECTIONS) {
      const late = new Promise((_, refuse) => setTimeout(() => refuse(new Error('too many connections')), 1000));
      await Promise.race([new Promise((grant) => waiting.push(grant)), late]);
    }
    open += 1;
  }
  function opened(object) {
    const reader = (method) => () => object[method]().finally(close);
    const { uploaded, httpEtag, httpMetadata } = object;
    return { uploaded, httpEtag, httpMetadata, text: reader('text'), arrayBuffer: reader('arrayBuffer') };
  }
  return {
    async get(key, options) {
      counts.get += 1;
      const [lost, failing, head] = ['x-lose', 'x-fail', 'x-then-head'].map((name) => asked.get(name));
      if (failing && key.includes(failing)) throw new Error('10001: internal error');
      if (lost && !isLost && key.includes(lost)) {
        isLost = true;
        return null;
      }
      await connect();
      const object = await bucket.get(head && isLost && key.endsWith('search/head.json') ? head : key, options);
      if (object === null) close();
      return object && opened(object);
    },
  };
}

async function purge(prefix) {
  for (const address of copies) {
    if (address.startsWith(prefix)) await caches.default.delete(address);
  }
  return new Response(null, { status: 204 });
}

export default {
  async fetch(request, env, context) {
    if (request.headers.has('x-purge')) return purge(request.headers.get('x-purge'));
    counts = { get: 0, match: 0, put: 0 };
    asked = request.headers;
    isLost = false;
    latest = { asOf: '', until: 0 };
    const answer = await worker.fetch(request, { ...env, BUCKET: counting(env.BUCKET) }, context);
    const shown = new Response(answer.body, answer);
    shown.headers.set('x-subrequests', [counts.get, counts.match, counts.put].join(' '));
    return shown;
  },
};
