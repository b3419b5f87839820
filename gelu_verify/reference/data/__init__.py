"""Data that ships with the reference: the certificate."""
