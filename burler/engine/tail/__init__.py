"""A run that goes on for ever.

What to open for what:

    tail, rounds, sources   what is due next; one round; what is read
    memory                  what is known from one round to the next
    wake, retries, settings, rediscovery  wake functions; further tries; intervals; streams that come and go
"""
