"""Storms: many random runs, killed, signalled and starved at random moments, and what must hold all the same.

python -m storm WORLD     (PYTHONPATH is tests; see ``__main__``)

A world tells stories. Its ``plan`` makes of a seed always the same story; its ``run`` starts the processes and strikes
them; its ``check`` looks at each outcome, knows from which STATE to go on, and in the end what must have come.
"""
