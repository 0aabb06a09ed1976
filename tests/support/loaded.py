"""What every command loads, once per process: modules, templates and scripts, botocore's models, OpenAPI schemas.

In a process that forks commands, or runs many of them, this is most of a small command's time.
"""

from functools import cache, lru_cache
from typing import Any

import boto3  # noqa: F401 - loaded for the commands
import botocore.session
import click
import psycopg  # noqa: F401 - as boto3
import pytest
from botocore import endpoint_provider, hooks
from botocore.endpoint_provider import RuleSet
from botocore.hooks import EventAliaser
from botocore.loaders import create_loader
from botocore.session import Session

from generator.api.openapi import document, schemas
from generator.cli.main import main
from generator.config.settings import Config
from generator.edge import templates
from generator.program import this_program
from generator.search import folding


def prepare() -> None:
    """Load it all now, and have the commands of this process, and of those that it forks, share it."""
    patch = pytest.MonkeyPatch()
    patch.setattr(botocore.session, "create_loader", cache(create_loader))
    _speed_up_clients(patch)
    patch.setattr(document, "schemas", cache(schemas.schemas))
    context = click.Context(main)
    for name in main.list_commands(context):
        main.get_command(context, name)
    environment = templates._ENVIRONMENT  # noqa: SLF001 - nothing but tests load what they do not render
    for name in environment.list_templates(extensions=["j2"]):
        environment.get_template(name)
    # Text to text, which takes a sixth of the time of a small build in chunks with a search index.
    for name in ("compact", "packed"):
        patch.setitem(environment.filters, name, lru_cache(maxsize=64)(environment.filters[name]))
    # What a process makes once, for its first site.
    this_program()
    document.document(Config())
    folding.table()
    nobody = "-"  # so that nothing looks for credentials
    Session().create_client("s3", "us-east-1", aws_access_key_id=nobody, aws_secret_access_key=nobody)


def _speed_up_clients(patch: pytest.MonkeyPatch) -> None:
    """Have botocore work out once what it works out for every session and client, which takes half of their time."""
    names, rule_sets = dict[str, str](), dict[int, RuleSet]()
    begin = EventAliaser.__init__

    def begin_with_known_names(self: EventAliaser, *arguments: Any) -> None:
        begin(self, *arguments)
        vars(self)["_alias_name_cache"] = names

    def rule_set(**data: Any) -> RuleSet:
        # The loader, which all sessions share, keeps the rules.
        if id(data["rules"]) not in rule_sets:
            rule_sets[id(data["rules"])] = RuleSet(**data)
        return rule_sets[id(data["rules"])]

    patch.setattr(EventAliaser, "__init__", begin_with_known_names)
    patch.setattr(hooks, "accepts_kwargs", lambda _: True)
    patch.setattr(endpoint_provider, "RuleSet", rule_set)
