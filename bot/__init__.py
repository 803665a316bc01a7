"""Answers questions from passages. Knows nothing of Slack or Discord."""
