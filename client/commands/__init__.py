"""The commands of `memoryd`: one file each, which exposes `command`; the file's name is the command's name."""
