"""The command line: builds objects, calls the runtime, turns errors into exit codes."""
