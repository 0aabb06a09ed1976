"""What every command loads, loaded once per process: modules, compiled templates, botocore's models, OpenAPI schemas.

In a process that forks commands, or runs many of them, this is most of a small command's time.
"""

from functools import cache

import boto3  # noqa: F401 - loaded for the commands
import botocore.session
import click
import psycopg  # noqa: F401 - as boto3
import pytest
from botocore.loaders import create_loader
from botocore.session import Session

from generator.api.openapi import document, schemas
from generator.cli.main import main
from generator.edge import templates


def prepare() -> None:
    """Load it all now, and have the commands of this process, and of those that it forks, share it."""
    patch = pytest.MonkeyPatch()
    patch.setattr(botocore.session, "create_loader", cache(create_loader))
    patch.setattr(document, "schemas", cache(schemas.schemas))
    context = click.Context(main)
    for name in main.list_commands(context):
        main.get_command(context, name)
    environment = templates._ENVIRONMENT  # noqa: SLF001 - nothing but tests load what they do not render
    for name in environment.list_templates(extensions=["j2"]):
        environment.get_template(name)
    nobody = "-"  # so that nothing looks for credentials
    Session().create_client("s3", "us-east-1", aws_access_key_id=nobody, aws_secret_access_key=nobody)
