"""``burler completion``."""

from __future__ import annotations

import click

from burler.cli import completing, process
from burler.cli.helping import Choice, Command, argument
from burler.errors import UsageError

SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Command)
@argument("shell", type=Choice(SHELLS))
@argument("script", default="burler", shell_complete=completing.tap_scripts)
def completion(shell: str, script: str) -> int:
    """Print what makes a shell complete commands, options, files and names of streams.

    Put it where the shell reads it once; then open a new shell, and press Tab behind `burler `.

    \b
    burler completion bash > ~/.local/share/bash-completion/completions/burler
    burler completion zsh > ~/.zfunc/_burler
    burler completion fish > ~/.config/fish/completions/burler.fish

    Without the package bash-completion, have ~/.bashrc read it. zsh looks into ~/.zfunc if ~/.zshrc has
    `fpath+=~/.zfunc` before `compinit`. SCRIPT is a tap's own command:

    \b
    burler completion bash >> ~/.bashrc
    burler completion bash tap-crm > ~/.local/share/bash-completion/completions/tap-crm
    """
    from click.shell_completion import get_completion_class

    if not script.replace("-", "_").replace(".", "_").isidentifier():
        raise UsageError(f"{script!r} is no name of a command, as tap-crm is: only letters, digits, - and _.")
    made = get_completion_class(shell)
    assert made is not None
    variable = f"_{script.replace('-', '_').replace('.', '_')}_COMPLETE".upper()
    shown = made(click.Command(script), {}, script, variable)
    with process.printing() as say:
        say(shown.source_template % shown.source_vars())
    return 0
