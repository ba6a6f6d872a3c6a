"""Files of annotation tools: items out, answers in; one file per tool, listed in `tools`."""
