"""Pool workers: how they look for jobs, talk to the gate, and end what does not end by itself."""

from __future__ import annotations

from memory_core.limits.sizes import MIB

# --- pool workers -------------------------------------------------------------------------------
#: A queue that nobody rings is looked at by the worker itself so often.
POOL_LOOK_SECONDS = 15.0
#: Jobs of one queue that one worker computes at once.
POOL_SLOTS_MAX = 16
#: Threads beyond the slots, so that a doorbell is always answered while every slot is busy.
POOL_SPARE_THREADS = 2
#: After a sign of life of a running job that did not get through, until the next one.
POOL_RENEW_AGAIN_SECONDS = 5.0
#: What one answer of the gate may take, and its size when unpacked.
POOL_ANSWER_SECONDS = 15.0
POOL_ANSWER_MAX_BYTES = 32 * MIB
#: A kept connection to the gate is not used any more after lying idle for so long; the gate closes it at 15 s.
POOL_CONNECTION_IDLE_SECONDS = 10.0
#: Between sendings of one request that is not answered; the last one repeats.
POOL_RESEND_PAUSES_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
#: How long one claim is sent again, and the end of a job whose result is there.
POOL_CLAIM_SECONDS = 20.0
POOL_FINISH_SECONDS = 900.0
#: A compute child that was told to stop is killed after this time.
POOL_CANCEL_SECONDS = 5.0
#: A compute child without work ends after this time.
POOL_CHILD_IDLE_SECONDS = 60.0
#: A question of the compute child to the gate, re-sends included.
POOL_ASK_SECONDS = 45.0
#: One message between a worker and its compute child.
POOL_FRAME_MAX_BYTES = 48 * MIB
#: What a kind says of its progress: characters, and the least time between two such lines.
POOL_PROGRESS_MAX_CHARS = 200
POOL_PROGRESS_SECONDS = 1.0
#: At the end of the worker, for handing back what is running; the supervisor waits a second longer.
POOL_STOP_SECONDS = 4.0
#: How often a worker looks whether its consumer hears and its slots get on.
POOL_PULSE_SECONDS = 2.0
#: Past its run cap a slot may be busy for so long with ending its job; later it hangs.
POOL_OVERTIME_SECONDS = 60.0
