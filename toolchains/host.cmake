# The build machine itself, with the instructions of its own CPU; aot-model's target follows the flags.
set(CMAKE_C_FLAGS_INIT "-march=native")
set(CMAKE_CXX_FLAGS_INIT "-march=native")
