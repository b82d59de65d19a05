"""Language models and embedders of others: one port, one file per vendor in `vendors`.

Nothing here is needed: without a provider everything works by rule. Nothing here knows the database, a budget or
a job; what a call may cost is asked of a `Meter` that the caller brings.
"""
