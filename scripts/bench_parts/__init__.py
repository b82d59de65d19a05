"""The parts of `scripts/bench`: each measures one promise against the real stack and checks what was stored."""
