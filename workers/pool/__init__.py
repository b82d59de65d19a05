"""The pool worker: rung by Celery, it claims jobs over HTTP, computes, and gives the results back. It holds no truth."""
