"""Files, dataframes and connections as plain columns; no population is known here."""
