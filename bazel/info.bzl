"""What the rules know of a compiled model: a provider, names."""

load(":options.bzl", "RESERVED_NAMES")

AotModelInfo = provider(
    doc = "A compiled model.",
    fields = {
        "header": "File: <name>.h",
        "metadata": "File: <name>.json",
        "name": "prefix of the generated files and symbols",
        "params": "File: <name>.params, or None when the parameters are in the code",
        "report": "File: table of layers and memory, or a page",
        "source": "File: <name>.c",
        "target": "what the code was generated for",
    },
)

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
_DIGITS = "0123456789"

def is_identifier(text):
    """Whether a text is a C identifier."""
    return text != "" and text[0] not in _DIGITS and not [c for c in text.elems() if c not in _LETTERS + _DIGITS]

def identifier(text):
    """The name of a target as a C identifier that a library can have: its own, or a similar one.

    Args:
        text: the name of a target.

    Returns:
        A string.
    """
    text = text.split("/")[-1]
    made = "".join([c if c in _LETTERS + _DIGITS else "_" for c in text.elems()])
    if made[0] in _DIGITS:
        made = "m" + made
    elif made[0] == "_":
        made = "m_" + made.lstrip("_") if made.strip("_") else "model"
    if (made.lower() + "_").startswith("aot_model_"):
        made = "m_" + made
    return made + "_model" if made.lower() in RESERVED_NAMES else made

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
