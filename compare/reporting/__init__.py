"""`report`: everything that the harness says about one function, as one HTML file."""

from compare.reporting.html_report import HtmlReport, report

__all__ = ["HtmlReport", "report"]
