"""Worst inputs by search, where trying every input is impossible."""
