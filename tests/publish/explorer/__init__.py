"""Explores publishing systematically: two actors, and every placement of up to two switches and faults between them.

world        a bucket in memory, output folders in memory, one clock
scheduler    two actors as threads of which one runs at a time, and stops at every request
actors       the real commands: publish, rebuild, takedown, and their options
scenarios    which actors meet, and on what
invariants   what readers and operators may see after every step, and after the next run
exploration  enumerates the placements, leaves out those that cannot differ from others, and plays each
"""
