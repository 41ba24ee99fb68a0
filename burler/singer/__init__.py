"""The Singer vocabulary as plain functions and frozen data, usable without the framework."""
