"""How the parts of the writer's process are put together."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from memory_core import job_kind, limits
from memory_core.clock import Clock
from memory_core.commands.durable_said import keep_next
from memory_core.commands.finding import Finder
from memory_core.commands.handoffs import release_expired_offers
from memory_core.commands.lost_writes import NOTHING_LOST
from memory_core.commands.rendering import render_due
from memory_core.commands.sessions import refinalise_due
from memory_core.config import Settings
from memory_core.ids import IdSource
from memory_core.store.database import Database
from memory_core.store.git_batches import newest_version
from memory_core.wiki.compare import Comparison
from memory_core.wiki.git import Git
from memory_core.wiki.git_past import PastFiles
from memory_core.wiki.git_repository import Repository
from memory_core.wiki.outbox import Installer
from memory_core.wiki.walk import WikiTree
from workers.broker import broker_url
from workers.celery_app import WRITER, make_app, queue_name, ring
from workers.heartbeat import Heartbeat
from workers.queue.connect import writer_client
from workers.queue.disk import DiskGauge
from workers.queue.incoming import Incoming
from workers.queue.keys import Keys
from workers.queue.reader import StreamReader
from workers.writer import embeddings, jobs, models
from workers.writer.celery_worker import Consumer
from workers.writer.clean_stop import was_clean
from workers.writer.duties import Duties, Duty
from workers.writer.engine import Engine, Stopping
from workers.writer.folders import FolderLooks
from workers.writer.history import History
from workers.writer.history_state import HistoryState
from workers.writer.loop import WriterLoop
from workers.writer.mark import MarkFile
from workers.writer.metrics import Metrics
from workers.writer.outside import Outside
from workers.writer.room import Ballast, Room
from workers.writer.startup import Owned
from workers.writer.stream import BrokerQueue
from workers.writer.watcher import Watcher
from workers.writer.wiki import WikiFiles
from workers.writer.wiki_status import StatusFile, status_file


@dataclass(frozen=True, kw_only=True)
class Writer:
    loop: WriterLoop
    consumer: Consumer
    history: History
    outside: Outside
    watcher: Watcher

    def start_looking(self) -> None:
        """After the promised files are in place: what differs then was done by somebody else."""
        self.outside.start()
        self.watcher.start(self.outside.touched)

    def stop_looking(self) -> None:
        self.watcher.stop()
        self.outside.stop()


def assemble(
    settings: Settings,
    clock: Clock,
    ids: IdSource,
    owned: Owned,
    mark: MarkFile,
    heart: Heartbeat,
    stopping: threading.Event,
) -> Writer:
    """All parts of a writer that owns its database; nothing runs yet and nothing is connected."""
    install, epoch = owned.install.text, owned.install.epoch
    engine = Engine(
        owned.connection,
        epoch=epoch,
        ids=ids,
        clock=clock,
        mark=mark,
        pause=pause_of(heart, stopping),
        obstacle=(tree := WikiTree(settings.wiki)).obstacle,
    )
    sender, disk = make_app(settings, install), DiskGauge(settings, clock)
    client, keys = writer_client(broker_url(settings)), Keys(install)
    queue = BrokerQueue(
        client,
        keys,
        StreamReader(client, keys, incoming=Incoming(settings.incoming)),
        disk=disk,
        clock=clock,
        epoch=epoch,
        ring=lambda name: ring(sender, install, name),
    )
    is_unclean = not was_clean(settings.run_dir, epoch)
    history = _history(settings, clock, ids, disk, epoch=epoch, is_unclean=is_unclean)
    lost_before = engine.read(newest_version) if is_unclean else NOTHING_LOST
    redact = _late_redactor(settings)
    watcher = Watcher(settings.wiki, clock)
    finder = Finder(
        tree,
        Database(settings.database),
        Comparison(tree, clock),
        redact,
        PastFiles(Git(settings.wiki, settings.tmp_dir)),
    )
    files = WikiFiles(engine, Installer(settings.wiki), redact, clock, lost_before=lost_before)
    outside = Outside(
        engine,
        finder,
        tree.look,
        clock=clock,
        folders=FolderLooks(settings.wiki, finder, clock),
        status=StatusFile(status_file(settings.run_dir), clock, watcher.state, files.obstacles),
        lost_before=lost_before,
    )
    files.changed, outside.came_back = outside.touched, files.came_back
    loop = WriterLoop(
        engine=engine,
        queue=queue,
        room=Room(owned.connection, _ballast(settings, disk)),
        duties=Duties(
            engine,
            clock,
            (
                *DUTIES,
                _books_of(history),
                *jobs.duties(job_kind.schedules(settings), clock),
                *models.duties(models.ConfiguredBudget(settings, job_kind.kinds.names())),
                *embeddings.duties(settings),
            ),
        ),
        files=files,
        metrics=Metrics(settings.run_dir / "writer.metrics.json", clock, epoch=epoch),
        clock=clock,
        beat=heart.beat,
        stopping=stopping,
        outside=outside,
    )
    app = make_app(settings, install, consumer="writer")
    return Writer(
        loop=loop,
        consumer=Consumer(
            app,
            install,
            loop.drain,
            waiting=lambda: client.llen(queue_name(install, WRITER)),
            clock=clock,
            stopping=stopping,
        ),
        history=history,
        outside=outside,
        watcher=watcher,
    )


#: What the writer originates itself, by the rules of the commands' families.
DUTIES = (
    Duty(name="release_offers", work=release_expired_offers, every_seconds=limits.DUTY_SECONDS),
    Duty(
        name="refinalise_sessions",
        work=lambda tx: refinalise_due(tx, limits.DUTY_SESSIONS),
        every_seconds=limits.DUTY_SECONDS,
    ),
    Duty(name="keep_said", work=keep_next, every_seconds=limits.DUTY_SECONDS),
    Duty(
        name="render_files",
        work=lambda tx: render_due(tx, limits.DUTY_RENDERED),
        every_seconds=limits.DUTY_SECONDS,
    ),
)


def _books_of(history: History) -> Duty:
    return Duty(name="history", work=history.keep_books, every_seconds=limits.DUTY_SECONDS)


def _history(
    settings: Settings, clock: Clock, ids: IdSource, disk: DiskGauge, *, epoch: int, is_unclean: bool
) -> History:
    return History(
        repository=Repository(Git(settings.wiki, settings.tmp_dir), clock),
        database=Database(settings.database),
        root=settings.wiki,
        aside=settings.history_aside,
        state=HistoryState(settings.run_dir, clock),
        may_write=lambda: disk.backlog_room_bytes() > 0,
        clock=clock,
        ids=ids,
        epoch=epoch,
        is_unclean=is_unclean,
    )


def pause_of(heart: Heartbeat, stopping: threading.Event) -> Callable[[float], None]:
    """A pause between tries during which the process is alive and can be ended."""

    def pause(seconds: float) -> None:
        heart.beat(seconds)
        if stopping.wait(seconds):
            raise Stopping

    return pause


def _ballast(settings: Settings, gauge: DiskGauge) -> Ballast:
    disk = os.statvfs(settings.data_dir)
    reserve = gauge.reserve_bytes(disk.f_blocks * disk.f_frsize)
    return Ballast(settings.ballast_file, reserve_bytes=reserve)


def _late_redactor(settings: Settings) -> Callable[[str], str]:
    """Built when a person's edit is found for the first time: its rules take memory that most writers never need."""
    made: list[Callable[[str], str]] = []
    lock = threading.Lock()

    def redact(text: str) -> str:
        # Asked by the thread that looks at the wiki too; the scanner takes one text at a time.
        with lock:
            return redact_now(text)

    def redact_now(text: str) -> str:
        if not made:
            from memory_core.redaction.server import Redactor

            redactor = Redactor(settings.install_key_file.read_bytes(), settings.cache_dir)
            made.append(lambda value: redactor.redact_text(value).text)
        return made[0](text)

    return redact
