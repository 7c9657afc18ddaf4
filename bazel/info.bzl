"""What the rules know of a compiled model: a provider, names."""

AotModelInfo = provider(
    doc = "A compiled model.",
    fields = {
        "header": "File: <name>.h",
        "metadata": "File: <name>.json",
        "name": "prefix of the generated files and symbols",
        "params": "File: <name>.params, or None when the parameters are in the code",
        "report": "File: table of layers and memory",
        "source": "File: <name>.c",
        "target": "what the code was generated for",
    },
)

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
_DIGITS = "0123456789"

def identifier(text):
    """The name of a target as a C identifier."""
    text = text.split("/")[-1]
    made = "".join([c if c in _LETTERS + _DIGITS else "_" for c in text.elems()])
    return "_" + made if made[0] in _DIGITS else made

def sources_of(library):
    """The label of the generating rule of an aot_model_library().

    Args:
        library: its label, a string.

    Returns:
        A label, a string.
    """
    if library.startswith("//") or library.startswith("@"):
        if ":" not in library:
            library = "%s:%s" % (library, library.rpartition("/")[2])
    return library + "_sources"
