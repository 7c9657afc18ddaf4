"""The provider of a compiled model."""

AotModelInfo = provider(
    doc = "A compiled model.",
    fields = {
        "header": "File: <name>.h",
        "metadata": "File: <name>.json",
        "name": "prefix of the generated files and symbols",
        "report": "File: table of layers and memory",
        "source": "File: <name>.c",
        "target": "what the code was generated for",
    },
)
