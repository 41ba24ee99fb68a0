"""What a stream consists of: ``manifest`` (claim, commit), ``document`` (its JSON), ``replaced`` (which files count
beside compacted ones).
"""
