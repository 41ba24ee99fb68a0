"""Tables of every format behind one small set of methods (``base.Target``)."""
