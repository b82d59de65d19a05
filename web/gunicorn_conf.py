"""How gunicorn runs the gate: one process of threads, loaded before the fork, bounded in everything."""

from __future__ import annotations

from typing import Any

from memory_core import limits
from memory_core.config import load
from workers import exit_codes
from workers.logs import configure

with exit_codes.said_in_a_line():
    settings = load()

bind = [f"[{settings.host}]:{settings.port}" if ":" in settings.host else f"{settings.host}:{settings.port}"]
worker_class = "web.patient.PatientWorker"
workers = 1
threads = limits.WEB_THREADS
# The secret scanner takes half a second to build: once, and not again when a worker is replaced.
preload_app = True
# gunicorn's own sign of life is a file; it must not lie outside the data directory.
worker_tmp_dir = str(settings.tmp_dir)
graceful_timeout = limits.WEB_STOP_SECONDS
timeout = 30
keepalive = 15
limit_request_line = limits.REQUEST_LINE_MAX_BYTES
limit_request_fields = limits.HEADER_FIELDS_MAX
limit_request_field_size = limits.HEADER_FIELD_MAX_BYTES
# Nobody's word for another address or scheme is taken.
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}
umask = 0o077
accesslog = None
errorlog = "-"
# What strangers send is no news, and may be a token in the wrong place.
loglevel = "error"
proc_name = "memoryd-web"


def post_worker_init(worker: Any) -> None:
    """After the fork: logs, threads and connections that must not be shared with the parent."""
    configure(settings, "web")
    worker.wsgi.extensions["memoryd.start"]()


def worker_exit(_: Any, worker: Any) -> None:
    stop = getattr(getattr(worker, "wsgi", None), "extensions", {}).get("memoryd.stop")
    if stop is not None:
        stop()
