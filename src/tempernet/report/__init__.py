"""The page of a study: claims, figures and runs, as Markdown and as one HTML file."""

from tempernet.report.page import counted, write_page

__all__ = ["counted", "write_page"]
