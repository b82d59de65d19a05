"""The schema comes to be by migrations, and is exactly what the tables say."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.schema import CreateIndex, CreateTable

from memory_core.clock import FakeClock
from memory_core.errors import SchemaTooNew, Unavailable
from memory_core.store import driver, fulltext, migrate, schema, tables_git, tables_jobs, tables_vectors
from memory_core.store.database import Database, create_database, open_writer
from memory_core.store.every_table import metadata
from memory_core.store.migrations.versions import r0001_first_tables
from tests.store.databases import new_database

SCRIPTS = migrate._SCRIPTS


def shape(sql: str) -> str:
    return re.sub(r"\s+", " ", sql).replace("( ", "(").replace(" )", ")").replace(" ,", ",").strip()


def test_the_migrations_make_exactly_what_the_tables_say(tmp_path):
    engine = create_engine(f"sqlite:///{new_database(tmp_path)}", module=driver.module)

    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "include_object": lambda _o, name, *_: not name.startswith(("chunks_fts", "observations_"))
            },
        )
        assert compare_metadata(context, metadata) == []


def test_every_word_of_the_schema_agrees(tmp_path):
    connection = open_writer(new_database(tmp_path))
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    made = {row["name"]: shape(row["sql"]) for row in rows}

    engine = create_engine("sqlite://", module=driver.module)
    wanted = {
        table.name: shape(str(CreateTable(table).compile(engine))) for table in metadata.tables.values()
    }
    for table in metadata.tables.values():
        wanted |= {index.name: shape(str(CreateIndex(index).compile(engine))) for index in table.indexes}
    wanted |= {
        ddl.split()[2 if "VIRTUAL" not in ddl else 3]: shape(ddl)
        for ddl in (*fulltext.DDL, *tables_git.TRIGGERS, *tables_jobs.TRIGGERS, *tables_vectors.TRIGGERS)
    }

    of_fts = re.compile(r"(chunks|observations)_fts_\w+")
    assert {
        n: s
        for n, s in made.items()
        if not of_fts.fullmatch(n) and n not in ("alembic_version", "sqlite_sequence")
    } == wanted


def test_the_list_of_revisions_is_that_of_the_files():
    scripts = ScriptDirectory(str(SCRIPTS))

    files = [script.revision for script in scripts.walk_revisions()]

    assert tuple(reversed(files)) == schema.REVISIONS
    assert scripts.get_heads() == [schema.HEAD]


def test_a_newer_schema_is_refused_by_name(tmp_path):
    path = new_database(tmp_path)
    connection = open_writer(path)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(SchemaTooNew, match=rf"9999.*{schema.HEAD}"):
        migrate.migrate(path, tmp_path, FakeClock())
    with Database(path).snapshot() as snapshot, pytest.raises(SchemaTooNew, match="9999"):
        schema.check_schema(snapshot)

    assert list(tmp_path.glob("before-*")) == []


def test_a_reader_waits_for_the_writer_to_upgrade(tmp_path):
    path = tmp_path / "memory.sqlite"
    create_database(path)

    with Database(path).snapshot() as snapshot, pytest.raises(Unavailable):
        schema.check_schema(snapshot)

    migrate.migrate(path, tmp_path, FakeClock())
    with Database(path).snapshot() as snapshot:
        schema.check_schema(snapshot)


def at_first_revision(tmp_path):
    """A database of the first release, with something in it."""
    path = tmp_path / "memory.sqlite"
    create_database(path)
    connection = open_writer(path)
    for statement in r0001_first_tables._DDL.split(";\n\n"):
        connection.execute(statement)
    connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    connection.execute("INSERT INTO alembic_version VALUES ('0001')")
    connection.execute("INSERT INTO principals VALUES ('somebody', 1)")
    connection.close()
    return path


def test_an_upgrade_makes_a_backup_first_and_keeps_three(tmp_path):
    backups = tmp_path / "backups"
    backups.mkdir()
    clock = FakeClock()
    made = []
    for _ in range(4):
        (tmp_path / "memory.sqlite").unlink(missing_ok=True)
        made.append(migrate.migrate(at_first_revision(tmp_path), backups, clock))
        clock.advance(1)

    assert sorted(backups.iterdir()) == made[1:]
    backup = open_writer(made[-1])
    assert backup.execute("SELECT version_num FROM alembic_version").fetchone()[0] == "0001"
    assert backup.execute("SELECT name FROM principals").fetchone()[0] == "somebody"


def test_a_current_schema_needs_no_backup_and_no_migration_library(tmp_path):
    path = new_database(tmp_path)
    backups = tmp_path / "backups"
    backups.mkdir()

    seen = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path; from memory_core.store.migrate import migrate_apart;"
            "migrate_apart(Path(sys.argv[1]), Path(sys.argv[2])); print('alembic' in sys.modules)",
            str(path),
            str(backups),
        ],
        capture_output=True,
        text=True,
        check=True,
    )

    assert seen.stdout.strip() == "False"
    assert list(backups.iterdir()) == []


def test_an_upgrade_apart_reaches_the_head(tmp_path):
    path = tmp_path / "a name with % and spaces.sqlite"
    create_database(path)

    migrate.migrate_apart(path, tmp_path)

    assert migrate.is_current(path)
