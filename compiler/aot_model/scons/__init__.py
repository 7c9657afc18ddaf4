"""The SCons tool. Nothing here is imported by the compiler: SCons loads the package aot_model by its path."""
