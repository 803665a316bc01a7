"""Finds passages: reads documents, indexes them, searches them. Knows nothing of chat or of language models."""
