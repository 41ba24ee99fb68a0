"""What a stream consists of: ``manifest`` (claim, commit, load), ``document`` (its JSON), ``replaced`` (which files
count beside compacted ones), ``whole_names`` (names that were cut for a folder).
"""
