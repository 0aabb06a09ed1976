"""`python -m generator` is `public-markets`."""

from generator.cli.main import main

main()
