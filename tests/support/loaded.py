"""What every command loads, once in a process that forks commands: it is most of a small command's time."""

import gc
import os
from datetime import timedelta

import click
import psycopg  # noqa: F401 - loaded for the commands

from generator.builder import ordinary  # noqa: F401 - the same
from generator.cli.main import main
from generator.config.settings import Config
from generator.edge import deployment, templates
from generator.program import this_program
from generator.search import folding
from generator.site.families import openapi
from generator.stores.s3_connection import Connection


def prepare() -> None:
    """Load it all now, for the processes that this one forks.

    Their garbage collector leaves it alone, or it would be copied. They use all processors, whatever started this one.
    """
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    context = click.Context(main)
    for name in main.list_commands(context):
        main.get_command(context, name)
    this_program()
    folding.table()
    for layout in ("pages", "chunks"):
        config = Config.model_validate({"layout": layout, "variant": "extended", "search": "title"})
        openapi(config)
        [*deployment.render(config)]
    environment = templates._ENVIRONMENT  # noqa: SLF001 - its pages take a third of a small build
    for name in environment.list_templates(filter_func=templates.is_page):
        environment.get_template(name)
    Connection("loaded", "loaded", "http://127.0.0.1:1", timedelta(seconds=1))  # asks for nothing
    gc.collect()
    gc.freeze()
