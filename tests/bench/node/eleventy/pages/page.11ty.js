// Eleventy's own way: data, paginated one at a time, to a permalink.
const fs = require('node:fs');
const { pages } = require(process.env.PAGES);

class Page {
  data() {
    return {
      all: Array.from(pages(JSON.parse(fs.readFileSync(process.env.LISTS, 'utf8')))),
      pagination: { data: 'all', size: 1, alias: 'one', addAllPagesToCollections: false },
      eleventyExcludeFromCollections: true,
      permalink: (data) => data.one.path,
    };
  }

  render({ one }) {
    return one.body;
  }
}

module.exports = Page;
