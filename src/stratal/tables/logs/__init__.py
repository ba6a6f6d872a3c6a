"""Logs of evaluation tools: a module for each tool."""
