"""Figures of a page, as plotly draws them; nothing here knows of HTML."""
