"""`python -m generator` is `public-markets`."""

from generator.cli import main

main()
