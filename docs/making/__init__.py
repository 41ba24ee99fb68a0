"""Pages of the docs that are made from the code, a module for each folder of them."""
