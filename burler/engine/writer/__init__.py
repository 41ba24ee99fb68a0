"""One stream's way to the sink.

What to open for what:

    outlet                  from rows to messages
    asking                  post_transform and bookmark functions
    other_pages             JSON in bytes, and Arrow
    outlet_files, files_given  batch files
    comparing               rows that went out before
    versions                versions of full tables
"""
