"""What pages name is kept, so that pages are found by it and lead to one another."""

from __future__ import annotations

import json

import yaml
from alembic import op

from memory_core.domain.entities import entities_of
from memory_core.domain.front_matter import entities_from
from memory_core.errors import Invalid

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    for statement in _DDL.split(";\n\n"):
        connection.exec_driver_sql(statement)
    for page, project, path, content, body_start in connection.exec_driver_sql(_PAGES):
        named = entities_of(path, content[body_start:], _declared(content[:body_start]))
        said = json.dumps([(entity.name, entity.at, entity.starts) for entity in named])
        for statement in _FILL.split(";\n\n"):
            connection.exec_driver_sql(statement, {"page": page, "project": project, "named": said})


def _declared(head: str) -> tuple[str, ...]:
    """What a page's front matter declares; nothing where it cannot be read."""
    try:
        values = yaml.safe_load(head.strip().strip("-"))
        return entities_from(values["entities"])
    except (yaml.YAMLError, Invalid, KeyError, TypeError):
        return ()


_PAGES = """
SELECT pages.number, projects.number, pages.path, v.content, v.body_start
FROM pages JOIN page_versions AS v ON v.id = pages.version_id JOIN projects ON projects.id = pages.project_id
WHERE pages.tombstoned_at IS NULL
"""

_FILL = """
INSERT OR IGNORE INTO entities(project_number, name) SELECT :project, json_extract(value, '$[0]') FROM json_each(:named);

INSERT OR IGNORE INTO entity_starts(project_number, start, entity_number)
SELECT :project, s.value, e.number FROM json_each(:named) AS n
CROSS JOIN entities AS e ON e.project_number = :project AND e.name = json_extract(n.value, '$[0]') CROSS JOIN json_each(n.value, '$[2]') AS s;

INSERT INTO page_entities(entity_number, page_number, text_at)
SELECT e.number, :page, json_extract(n.value, '$[1]') FROM json_each(:named) AS n
CROSS JOIN entities AS e ON e.project_number = :project AND e.name = json_extract(n.value, '$[0]')
"""

_DDL = """
CREATE TABLE entities (
    number INTEGER NOT NULL,
    project_number INTEGER NOT NULL,
    name TEXT NOT NULL,
    CONSTRAINT pk_entities PRIMARY KEY (number),
    CONSTRAINT uq_entities_project_number_name UNIQUE (project_number, name),
    CONSTRAINT fk_entities_project_number FOREIGN KEY(project_number) REFERENCES projects (number) ON DELETE CASCADE
);

CREATE TABLE entity_starts (
    project_number INTEGER NOT NULL,
    start TEXT NOT NULL,
    entity_number INTEGER NOT NULL,
    CONSTRAINT pk_entity_starts PRIMARY KEY (project_number, start, entity_number),
    CONSTRAINT fk_entity_starts_project_number FOREIGN KEY(project_number) REFERENCES projects (number) ON DELETE CASCADE,
    CONSTRAINT fk_entity_starts_entity_number FOREIGN KEY(entity_number) REFERENCES entities (number) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE INDEX ix_entity_starts_entity_number ON entity_starts (entity_number);

CREATE TABLE page_entities (
    entity_number INTEGER NOT NULL,
    page_number INTEGER NOT NULL,
    text_at INTEGER,
    CONSTRAINT pk_page_entities PRIMARY KEY (entity_number, page_number),
    CONSTRAINT fk_page_entities_entity_number FOREIGN KEY(entity_number) REFERENCES entities (number) ON DELETE CASCADE,
    CONSTRAINT fk_page_entities_page_number FOREIGN KEY(page_number) REFERENCES pages (number) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE INDEX ix_page_entities_page_number ON page_entities (page_number)
"""
