"""The pictures of a report. The one place that imports matplotlib."""
