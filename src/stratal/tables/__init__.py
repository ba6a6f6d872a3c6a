"""Read files, dataframes and tables of connections as columns."""
