"""The trusted program: holds references, seeds, inputs, expected outputs, tolerances and clock; judges candidates."""
