"""One stream's way to the sink.

What to open for what:

    writer          from what user code yielded to messages; hooks, limits, files that go on as they are
    page_buffer     a page as lines or columns
    versions        versions of full tables
"""
