"""Vendors: one file each, registered under the file's name. A vendor does not know another one."""
