"""The questions of a published site are those that lists may show, whatever a killed run put."""

import json
import sqlite3
from pathlib import Path

from generator.api import keys
from generator.site.published import PublishedState
from generator.tree.folder import read_only
from tests.support.sites.builds import build_now, make_config
from tests.support.sites.question_tables import create_questions, insert_question, question_id
from tests.support.sites.rows import insert_market, market_id


def test_of_details_of_two_states_each_market_is_in_one_question(tmp_path: Path, database: sqlite3.Connection) -> None:
    create_questions(database)
    for number in (1, 2, 3):
        insert_market(database, number)
    insert_question(database, 1, 1, 2)
    insert_question(database, 2, 3)
    config = make_config(tmp_path, dumps__ndjson=False)
    build_now(config)
    one, two = (keys.question(question_id(number)) for number in (1, 2))
    bodies = {key: json.loads((config.output / key).read_bytes()) for key in (one, two)}
    bodies[two]["markets"] += bodies[one]["markets"]
    (config.output / two).write_text(json.dumps(bodies[two]))
    with read_only(config.output) as folder:
        built = folder.manifest()
        assert built
        found = PublishedState(built, folder, doubted=frozenset({two})).catalog().questions
    assert found
    members = [[member.market_id for member in question.members] for question in found]
    assert members == [[market_id(1), market_id(2)], [market_id(3)]]
