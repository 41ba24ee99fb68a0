"""``python -m plain_singer``."""

from plain_singer.tap import main

main()
