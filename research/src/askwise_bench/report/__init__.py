"""The report of a run: tables, figures and verdicts, as HTML and Markdown."""
