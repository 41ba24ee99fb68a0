"""What tests share, found as ``support``: ``tests`` is on the path, of processes that tests start, too:

cli         a command, in this process or in one of its own
taps        a tap's command, and what it discovers
servers     a web server that answers as a test says, or stalls, or breaks off
objects     S3, one server for all processes
postgres    PostgreSQL, the same; shared: how that is done
clocks      waiting for a fact; clocks that a test moves
strategies  schemas and rows for hypothesis; shaping: rows through a stream's shaping, fast and slow
internals   the inner modules that tests reach
"""
