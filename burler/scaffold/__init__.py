"""New tap projects: the templates that ``burler new`` fills, and how a project comes into being whole or not at all."""
