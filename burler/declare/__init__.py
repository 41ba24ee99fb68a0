"""Declaring: decorators, the registry behind them, and the frozen specs they make."""
