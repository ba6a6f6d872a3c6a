"""Reports: a result's plain dict becomes a page, and a page becomes text, HTML or a figure."""
