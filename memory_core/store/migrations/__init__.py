"""How the schema came to be: one file per revision, each complete in itself. Alembic runs them."""
