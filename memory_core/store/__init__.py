"""All SQL. Tables and statements are SQLAlchemy Core expressions; one module per aggregate."""
