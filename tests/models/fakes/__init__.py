"""The vendors' servers as their documentation describes them: one file each, strict about what comes in."""
