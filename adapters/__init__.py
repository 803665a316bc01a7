"""Translates between the outside (terminal, chat platforms) and the bot, and nothing else."""
