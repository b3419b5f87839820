"""What people read: records rendered for the terminal, as Markdown, as files."""
