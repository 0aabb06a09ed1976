"""The pages for people, beside `v1/` in the output folder. Start with `pages`."""
