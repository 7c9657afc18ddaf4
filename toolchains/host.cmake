# The build machine itself, with the instructions of its own CPU.
set(AOT_MODEL_TARGET host)
set(CMAKE_C_FLAGS_INIT "-march=native")
set(CMAKE_CXX_FLAGS_INIT "-march=native")
