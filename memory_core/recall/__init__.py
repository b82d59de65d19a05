"""Finding what is kept: from a question in anybody's words to ranked hits of one scope."""
