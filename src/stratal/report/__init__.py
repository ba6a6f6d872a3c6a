"""Reports: results become plain dicts, and dicts become text, tables and figures."""
