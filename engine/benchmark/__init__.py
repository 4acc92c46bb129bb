"""How fast the engine is here, beside other people's code and the machine's own limit."""
