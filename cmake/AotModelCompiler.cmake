# The compiler runs on the build machine, also when the project crosses: it is looked for outside CMAKE_FIND_ROOT_PATH,
# with Python's Interpreter component alone (with Development, FindPython3 would look for the target's Python).
include_guard(GLOBAL)

# Sets <prefix>_PROBLEM to why there is no working compiler, or to nothing and <prefix>_COMMAND to the command that runs
# it, <prefix>_VERSION, _CMAKE_DIR, _INCLUDE_DIR, _PROBE and _RESERVED (names that no library has) to what it says of its
# installation, <prefix>_OPTIONS to the keywords
# that are its options, as <kind>/<KEYWORD>/<option>.
function(_aot_model_find_compiler prefix)
    set(${prefix}_PROBLEM "" PARENT_SCOPE)
    set(command "${AotModel_COMPILER}")
    if (NOT command)
        _aot_model_find_python(python)
        if (NOT python)
            string(CONCAT problem "AotModel: the compiler needs Python 3.10 or newer, and there is none. "
                "Install it, or say where it is with -DPython3_EXECUTABLE=<file>.")
            set(${prefix}_PROBLEM "${problem}" PARENT_SCOPE)
            return()
        endif ()
        set(command "${python}" -m aot_model)
        set(source_tree "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../compiler")
        if (EXISTS "${source_tree}/aot_model/__init__.py")
            cmake_path(NORMAL_PATH source_tree)
            list(PREPEND command "${CMAKE_COMMAND}" -E env --modify "PYTHONPATH=path_list_prepend:${source_tree}")
        endif ()
    endif ()

    execute_process(
        COMMAND ${command} --version --json
        OUTPUT_VARIABLE answer
        ERROR_VARIABLE complaint
        RESULT_VARIABLE status
    )
    list(JOIN command " " shown)
    string(JSON version ERROR_VARIABLE bad GET "${answer}" version)
    if (NOT status EQUAL 0 OR bad)
        string(CONCAT problem "AotModel: the compiler does not run: ${shown} --version --json\n${complaint}\n"
            "Activate the virtual environment that has aot-model (or: pip install aot-model), say which Python has it with "
            "-DPython3_EXECUTABLE=<file>, or set AotModel_COMPILER to the command.")
        set(${prefix}_PROBLEM "${problem}" PARENT_SCOPE)
        return()
    endif ()
    string(JSON missing ERROR_VARIABLE bad GET "${answer}" missing)
    string(REGEX MATCHALL "[A-Za-z0-9_.-]+" missing "${missing}")
    if (missing AND NOT bad)
        list(JOIN missing " " missing)
        string(JSON python GET "${answer}" executable)
        string(JSON install GET "${answer}" install)
        string(CONCAT problem "AotModel: ${python} lacks packages that the compiler needs: ${missing}\n"
            "Install them:\n    ${install}\n"
            "or choose a Python that has them with -DPython3_EXECUTABLE=<file>.")
        set(${prefix}_PROBLEM "${problem}" PARENT_SCOPE)
        return()
    endif ()
    foreach (key IN ITEMS cmake_dir include_dir probe reserved)
        string(JSON value ERROR_VARIABLE bad GET "${answer}" ${key})
        if (bad)
            set(value "")
        endif ()
        string(TOUPPER ${key} suffix)
        set(${prefix}_${suffix} "${value}" PARENT_SCOPE)
    endforeach ()
    set(options "")
    foreach (kind IN ITEMS text list map flag file)
        string(JSON last ERROR_VARIABLE bad LENGTH "${answer}" options ${kind})
        if (bad OR last EQUAL 0)
            continue()
        endif ()
        math(EXPR last "${last} - 1")
        foreach (index RANGE ${last})
            string(JSON keyword MEMBER "${answer}" options ${kind} ${index})
            string(JSON option GET "${answer}" options ${kind} ${keyword})
            string(TOUPPER "${keyword}" keyword)
            list(APPEND options "${kind}/${keyword}/${option}")
        endforeach ()
    endforeach ()
    set(${prefix}_OPTIONS "${options}" PARENT_SCOPE)
    set(${prefix}_COMMAND "${command}" PARENT_SCOPE)
    set(${prefix}_VERSION "${version}" PARENT_SCOPE)
endfunction()

# The interpreter of the environment that these files are installed in, else the one that CMake finds.
function(_aot_model_find_python result)
    if (NOT Python3_EXECUTABLE AND CMAKE_CURRENT_FUNCTION_LIST_DIR MATCHES "^(.*)/share/AotModel/cmake$")
        foreach (candidate IN ITEMS bin/python3 Scripts/python.exe)
            if (EXISTS "${CMAKE_MATCH_1}/${candidate}")
                set(${result} "${CMAKE_MATCH_1}/${candidate}" PARENT_SCOPE)
                return()
            endif ()
        endforeach ()
    endif ()
    set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
    set(Python3_FIND_STRATEGY LOCATION)  # the first on PATH, which may be an environment's, not the newest
    set(Python3_FIND_VIRTUALENV FIRST)
    find_package(Python3 3.10 QUIET COMPONENTS Interpreter)
    if (Python3_Interpreter_FOUND)
        set(${result} "${Python3_EXECUTABLE}" PARENT_SCOPE)
    else ()
        set(${result} "" PARENT_SCOPE)
    endif ()
endfunction()
