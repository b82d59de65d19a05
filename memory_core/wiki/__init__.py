"""The wiki on disk: where pages lie, how their front matter is read and written, how files are put there safely."""
