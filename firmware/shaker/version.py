"""The one place that holds the firmware's version (checked against CHANGELOG.md)."""

VERSION = "1.0.0"
