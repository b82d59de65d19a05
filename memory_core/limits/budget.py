"""What calls of models may cost, how long is known what they cost, and how much may wait for them."""

from __future__ import annotations

# --- budget -------------------------------------------------------------------------------------
#: Tokens of a day (UTC) where the configuration says nothing.
BUDGET_TOKENS_PER_DAY = 1_000_000
#: Jobs of kinds that use a model which may wait; past that no droppable one is made.
BUDGET_BACKLOG = 500
#: The allowance of a kind comes from the activity of so many days, this one included.
BUDGET_ACTIVITY_DAYS = 7
#: Single calls are remembered so long; their sums by day so long, and after that as one sum.
MODEL_CALL_DAYS = 30
MODEL_USAGE_DAYS = 400
#: Names of providers, models and prompts.
MODEL_NAME_MAX_CHARS = 128
#: One call: more than any model takes or gives.
MODEL_CALL_TOKENS_MAX = 100_000_000
#: Why models are paused, in a person's words; why a call was refused, in ours.
PAUSE_REASON_MAX_CHARS = 200
STOP_NOTE_MAX_CHARS = 500
#: A job that waits for the budget looks again after so long at the latest.
JOB_BUDGET_PAUSE_MAX_SECONDS = 86_400.0
#: Days of usage that one answer tells.
USAGE_DAYS_MAX = 400
USAGE_ROWS_MAX = 5_000
#: Jobs that wait for the budget are counted up to this.
WAITING_COUNTED_MAX = 10_000
