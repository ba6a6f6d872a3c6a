"""Logs of evaluation tools, one file for each tool."""
