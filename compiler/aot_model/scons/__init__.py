"""The SCons tool. Nothing here is imported by the compiler: SCons loads aot_model.py by its path."""
