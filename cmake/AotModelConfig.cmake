# find_package(AotModel): the compiler, checked, and the functions
#
#   aot_model_library()     a static library of a model
#   aot_model_arena()       one memory for several models
#   aot_model_test()        a CTest that compares its outputs with vectors
#   aot_model_benchmark()   a program that says how long one inference takes
#
# Ways to find it:
#   * an active virtual environment with the wheel (or an editable install) of aot-model: no flag;
#   * cmake -DAotModel_DIR="$(aot-model --cmake-dir)": any installation, also when the toolchain file restricts
#     find_package() to the target's files (CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY);
#   * add_subdirectory() or FetchContent of the source tree.
#
# Variables:
#   AotModel_COMPILER   command (a list) that runs the compiler; empty: `<python> -m aot_model` of this installation
#   Python3_EXECUTABLE  the interpreter of that default
#   AOT_MODEL_TARGET    what to generate code for, unless aot_model_library() says; the toolchain files set it

if (CMAKE_VERSION VERSION_LESS 3.25)
    set(AotModel_FOUND FALSE)
    string(CONCAT AotModel_NOT_FOUND_MESSAGE "AotModel needs CMake 3.25 (header sets of targets, paths as lists); this is ${CMAKE_VERSION}. "
        "`pip install cmake` brings a new one, beside the system's.")
    return()
endif ()
cmake_policy(VERSION 3.25...4.1)  # of the functions below, whatever the project's policies are

set(AotModel_COMPILER "" CACHE STRING "Command that runs the aot-model compiler; empty: found with Python")

include("${CMAKE_CURRENT_LIST_DIR}/AotModelConfigVersion.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/AotModelCompiler.cmake")

_aot_model_find_compiler(_aot_model)
if (_aot_model_PROBLEM)
    set(AotModel_FOUND FALSE)
    set(AotModel_NOT_FOUND_MESSAGE "${_aot_model_PROBLEM}")
    return()
endif ()

# An editable install has a copy of this file in the environment's share/, and the files that are edited in its source
# tree: the compiler says which belong to it.
if (_aot_model_CMAKE_DIR AND NOT _aot_model_CMAKE_DIR STREQUAL CMAKE_CURRENT_LIST_DIR)
    set(AotModel_COMPILER "${_aot_model_COMMAND}")
    include("${_aot_model_CMAKE_DIR}/AotModelConfig.cmake")
    return()
endif ()

if (NOT _aot_model_VERSION VERSION_EQUAL PACKAGE_VERSION)
    string(CONCAT AotModel_NOT_FOUND_MESSAGE
        "AotModel: these CMake files are of version ${PACKAGE_VERSION}, but the compiler is ${_aot_model_VERSION}: "
        "${_aot_model_COMMAND}\nSet AotModel_DIR to what 'aot-model --cmake-dir' prints, or unset AotModel_COMPILER.")
    set(AotModel_FOUND FALSE)
    return()
endif ()

# Functions are global, so what they need is global too: they work in directories that never called find_package().
set_property(GLOBAL PROPERTY AOT_MODEL_COMMAND "${_aot_model_COMMAND}")
set_property(GLOBAL PROPERTY AOT_MODEL_INCLUDE_DIR "${_aot_model_INCLUDE_DIR}")
set_property(GLOBAL PROPERTY AOT_MODEL_PROBE "${_aot_model_PROBE}")
set_property(GLOBAL PROPERTY AOT_MODEL_OPTIONS "${_aot_model_OPTIONS}")
set_property(GLOBAL PROPERTY AOT_MODEL_RESERVED "${_aot_model_RESERVED}")
if (NOT TARGET aot_model_runtime)
    # For code that handles models in general and links none; a library made by aot_model_library() has the headers.
    add_library(aot_model_runtime INTERFACE)
    add_library(AotModel::runtime ALIAS aot_model_runtime)
    target_include_directories(aot_model_runtime INTERFACE "$<BUILD_INTERFACE:${_aot_model_INCLUDE_DIR}>")
endif ()

include("${CMAKE_CURRENT_LIST_DIR}/AotModelTarget.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/AotModelBackends.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/AotModelLibrary.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/AotModelArena.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/AotModelTest.cmake")
set(AotModel_VERSION "${PACKAGE_VERSION}")
set(AotModel_FOUND TRUE)
